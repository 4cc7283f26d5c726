import { usesGpu, type NodePod, type PodContainer } from './node-pod.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import { readRefusal } from '../../gpu/refusal-mark.js';
import { MIG_RESOURCE_PREFIX } from '../../gpu/mig.js';
import { RESOURCE_NAME } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { podSubject, type EventRecorder } from '../../kube/events.js';
import type { NodePods } from './node-pods.js';

/** A refused pod with the reason; the container is empty if the pod as a whole was refused. */
export type RefusalListener = (owner: ContainerRef, reason: string) => void;

/** Writes to pods; implemented by PodWriter and Events. */
export interface FailedPodsOptions {
  readonly pods: Pick<NodePods, 'onChange' | 'get'>;
  readonly remove: (pod: NodePod) => void;
  readonly record: EventRecorder['record'];
  /** Told of each pod, and its container if one is known, with the agent's or the kubelet's reason. */
  readonly onRefused?: RefusalListener;
  readonly clock: Clock;
  readonly log: Log;
}

/** The kubelet retries a container whose start was refused, so the refusal counts only after this long. */
const REFUSED_START_MS = 60_000;

/** An earlier run of the agent has already reported pods that failed longer ago. */
const MAX_REPORT_AGE_MS = 600_000;

/**
 * Delays before a refused pod is deleted: they grow while the controller re-creates it and it is refused again, up to
 * the second figure.
 */
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 300_000;
const OWNERS_LIMIT = 512;

/** Reason of the event of a pod that was not admitted. */
const ADMISSION_REFUSED = 'GPURefused';
/** Reason of the event of a container that may not start; the original's name. */
const START_REFUSED = 'PreStartContainerCheckErr';

/** The kubelet's reason for pods for which it got no devices. */
const ADMISSION_FAILED = 'UnexpectedAdmissionError';

/** The kubelet's messages about a resource whose plugin is disconnected, or has not sent its devices yet. */
const NO_PLUGIN = /no healthy devices present|cannot allocate unregistered device|endpoint .* has been stopped/;
const OUR_RESOURCES: readonly string[] = [...Object.values(RESOURCE_NAME), MIG_RESOURCE_PREFIX];

/**
 * The agent does not delete pods of these controllers: a daemon set deletes them itself with growing delays, which the
 * agent would defeat; a node "controls" its static pods, which come from files.
 */
const EXEMPT_CONTROLLERS: ReadonlySet<string> = new Set(['DaemonSet', 'Node']);

/**
 * Writes an event with the reason for each pod that failed because of a refusal. If a controller created the pod, the
 * pod is deleted, and the controller creates a new one. The agent's own text in the pod's status is the evidence: a pod
 * that failed for another reason is never touched.
 */
export class FailedPods {
  readonly #options: FailedPodsOptions;
  /** UIDs of handled pods; removed when the pod is deleted. */
  readonly #handled = new Set<string>();
  /** Containers whose start was refused, by pod; each waits for a second check. */
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
      this.#tell(pod, refusedStart(refused) ?? '', refused.name);
      this.#refusedStarts.set(
        pod.objectUid,
        this.#after(REFUSED_START_MS, () => this.#checkAgain(pod, refused)),
      );
    }
  }

  /** Checks some time after a refused start whether the container still does not run. */
  #checkAgain(pod: NodePod, refused: PodContainer): void {
    this.#refusedStarts.delete(pod.objectUid);
    const current = this.#options.pods.get(pod.uid);
    const container = current === null ? undefined : containersOf(current).find((entry) => entry.name === refused.name);
    if (current === null || container === undefined || container.running || container.waiting === '') return;
    this.#refused(current, START_REFUSED, refusedStart(refused) ?? '', refused.name);
  }

  #refused(pod: NodePod, event: string, reason: string, container?: string): void {
    this.#handled.add(pod.objectUid);
    const { controller } = pod;
    const recreated = controller !== null && !pod.mirror && !EXEMPT_CONTROLLERS.has(controller.kind);
    const failedAt = pod.admittedAt ?? pod.createdAt;
    if (this.#options.clock.now() - failedAt < MAX_REPORT_AGE_MS) {
      const consequence = recreated
        ? `; deleted, so that ${controller.kind} ${controller.name} can create it anew`
        : '';
      this.#record(pod, event, `${reason}${consequence}`, container);
      this.#tell(pod, reason, container);
    }
    if (!recreated || pod.deletedAt !== null) return;
    const delayMs = this.#delayFor(pod, controller);
    this.#options.log.info(
      { pod: `${pod.namespace}/${pod.name}`, controller, reason, delayMs },
      'a refused pod was deleted; its controller creates a new one',
    );
    this.#after(delayMs, () => this.#options.remove(pod));
  }

  #tell({ uid, namespace, name }: NodePod, reason: string, container = ''): void {
    this.#options.onRefused?.({ podUid: uid, namespace, pod: name, container }, reason);
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
 * Why the kubelet did not admit a pod because of our resources: the agent's refusal, or the kubelet's own message when
 * it found no device plugin or an outdated device count, as happens for a moment when agent or kubelet start. Null for
 * every other failure.
 */
function refusedAdmission({ reason, message }: NodePod['failure']): string | null {
  if (OUR_RESOURCES.some((resource) => reason.startsWith(`OutOf${resource}`))) return message;
  if (reason !== ADMISSION_FAILED) return null;
  const namesOurs = OUR_RESOURCES.some((resource) => message.includes(resource));
  return readRefusal(message) ?? (namesOurs && NO_PLUGIN.test(message) ? message : null);
}

/** Why the agent refused the start of this container; null if it waits for another reason, or does not wait. */
function refusedStart(container: PodContainer): string | null {
  return container.waiting.includes('PreStartContainer') ? readRefusal(container.waiting) : null;
}
