import { usesGpu, type NodePod, type PodContainer } from './node-pod.js';
import { readRefusal } from '../../gpu/refusal-mark.js';
import { RESOURCE_NAME } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { NodePods } from './node-pods.js';

/** What is done to pods; PodWriter and Events. */
export interface FailedPodsOptions {
  readonly pods: Pick<NodePods, 'onChange' | 'get'>;
  readonly remove: (pod: NodePod) => void;
  readonly record: EventRecorder['record'];
  readonly clock: Clock;
  readonly log: Log;
}

/** A container whose start was refused may yet start: the kubelet tries again. After this long it will not. */
const REFUSED_START_MS = 60_000;

/** Pods that failed longer ago were told of by an earlier run of ours. */
const OLD_NEWS_MS = 600_000;

/** What a controller re-creates and we refuse again is deleted slower each time, up to the second figure. */
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 300_000;
const OWNERS_LIMIT = 512;

/** Reason of the event of a pod that was not admitted. */
const ADMISSION_REFUSED = 'GPURefused';
/** Reason of the event of a container that may not start; the original's word. */
const START_REFUSED = 'PreStartContainerCheckErr';

/** The reason that the kubelet gives for pods it could not get devices for. */
const ADMISSION_FAILED = 'UnexpectedAdmissionError';

/** The kubelet's words about a resource whose plugin is away, or was before the list of its devices came. */
const NO_PLUGIN = /no healthy devices present|cannot allocate unregistered device|endpoint .* has been stopped/;
const OUR_RESOURCES: readonly string[] = Object.values(RESOURCE_NAME);

/**
 * Their pods are not deleted by us: a daemon set does so itself, with growing pauses that we would undo; a node
 * "controls" its static pods, which come from files.
 */
const LEFT_TO_THEMSELVES: ReadonlySet<string> = new Set(['DaemonSet', 'Node']);

/**
 * Pods that failed because of our refusal get an event with the reason. If a controller created such a pod, it is
 * deleted, and the controller creates a new one. Our own text in the pod's status is the evidence: a pod that failed
 * for another reason is never touched.
 */
export class FailedPods {
  readonly #options: FailedPodsOptions;
  /** Pods that were dealt with, by UID; emptied as they go. */
  readonly #handled = new Set<string>();
  /** Containers whose start we refused, by pod; waiting for the second sample. */
  readonly #refusedStarts = new Map<string, () => void>();
  readonly #delays = new Map<string, { delayMs: number; at: number }>();
  readonly #timers = new Set<() => void>();
  #unsubscribe: () => void = () => undefined;

  constructor(options: FailedPodsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#unsubscribe = this.#options.pods.onChange(({ before, after }) =>
      after === null ? this.#forget(before) : this.#look(after),
    );
  }

  stop(): void {
    this.#unsubscribe();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #look(pod: NodePod): void {
    if (this.#handled.has(pod.objectUid) || !containersOf(pod).some(usesGpu)) return;
    if (pod.phase === 'Failed') {
      const reason = refusedAdmission(pod.failure);
      if (reason !== null) this.#refused(pod, ADMISSION_REFUSED, reason);
      return;
    }
    const refused = containersOf(pod).find((container) => refusedStart(container) !== null);
    if (refused !== undefined && !this.#refusedStarts.has(pod.objectUid)) {
      this.#record(pod, START_REFUSED, refusedStart(refused) ?? '', refused.name);
      this.#refusedStarts.set(
        pod.objectUid,
        this.#after(REFUSED_START_MS, () => this.#lookAgain(pod, refused)),
      );
    }
  }

  /** A start was refused a while ago: is the container still not running? */
  #lookAgain(pod: NodePod, refused: PodContainer): void {
    this.#refusedStarts.delete(pod.objectUid);
    const current = this.#options.pods.get(pod.uid);
    const container = current === null ? undefined : containersOf(current).find((entry) => entry.name === refused.name);
    if (current === null || container === undefined || container.running || container.waiting === '') return;
    this.#refused(current, START_REFUSED, refusedStart(refused) ?? '', refused.name);
  }

  #refused(pod: NodePod, event: string, reason: string, container?: string): void {
    this.#handled.add(pod.objectUid);
    const { controller } = pod;
    const recreated = controller !== null && !pod.mirror && !LEFT_TO_THEMSELVES.has(controller.kind);
    const failedAt = pod.admittedAt ?? pod.createdAt;
    if (this.#options.clock.now() - failedAt < OLD_NEWS_MS) {
      const consequence = recreated
        ? `; deleted, so that ${controller.kind} ${controller.name} can create it anew`
        : '';
      this.#record(pod, event, `${reason}${consequence}`, container);
    }
    if (!recreated || pod.deletedAt !== null) return;
    const delayMs = this.#delayFor(pod, controller);
    this.#options.log.info(
      { pod: `${pod.namespace}/${pod.name}`, controller, reason, delayMs },
      'a refused pod was deleted; its controller creates a new one',
    );
    this.#after(delayMs, () => this.#options.remove(pod));
  }

  #record(pod: NodePod, reason: string, message: string, container?: string): void {
    this.#options.record(podSubject({ ...pod, uid: pod.objectUid }, container), { type: 'Warning', reason, message });
  }

  #delayFor(pod: NodePod, controller: { readonly kind: string; readonly name: string }): number {
    const key = `${pod.namespace}/${controller.kind}/${controller.name}`;
    const now = this.#options.clock.now();
    const known = this.#delays.get(key);
    const recent = known !== undefined && now - known.at < 2 * MAX_DELAY_MS;
    const delayMs = recent ? Math.min(MAX_DELAY_MS, known.delayMs * 2) : FIRST_DELAY_MS;
    this.#delays.delete(key);
    this.#delays.set(key, { delayMs, at: now });
    const [oldest] = this.#delays.keys();
    if (this.#delays.size > OWNERS_LIMIT && oldest !== undefined) this.#delays.delete(oldest);
    return delayMs;
  }

  #forget(pod: NodePod | null): void {
    if (pod === null) return;
    this.#handled.delete(pod.objectUid);
    this.#refusedStarts.get(pod.objectUid)?.();
    this.#refusedStarts.delete(pod.objectUid);
  }

  #after(delayMs: number, action: () => void): () => void {
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#timers.delete(stop);
      action();
    });
    const stop = (): void => {
      this.#timers.delete(stop);
      cancel();
    };
    this.#timers.add(stop);
    return stop;
  }
}

function containersOf(pod: NodePod): readonly PodContainer[] {
  return [...pod.initContainers, ...pod.containers];
}

/**
 * Why the kubelet did not admit a pod for want of our resources: our refusal, or its own words where it met no device
 * plugin or an old count of them, as it does for a moment when agent or kubelet start; null for every other failure.
 */
function refusedAdmission({ reason, message }: NodePod['failure']): string | null {
  if (OUR_RESOURCES.some((resource) => reason === `OutOf${resource}`)) return message;
  if (reason !== ADMISSION_FAILED) return null;
  const namesOurs = OUR_RESOURCES.some((resource) => message.includes(resource));
  return readRefusal(message) ?? (namesOurs && NO_PLUGIN.test(message) ? message : null);
}

/** Why we refused the start of this container; null where it waits for something else, or not at all. */
function refusedStart(container: PodContainer): string | null {
  return container.waiting.includes('PreStartContainer') ? readRefusal(container.waiting) : null;
}
