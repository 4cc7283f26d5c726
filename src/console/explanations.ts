import type { Clock } from '../host/clock.js';
import { podPath } from '../kube/api-path.js';
import type { KubeApi } from '../kube/client.js';
import { KubeError } from '../kube/failure.js';
import { readPod } from '../kube/pod.js';
import { explainWaiting } from '../cluster/explain/explain-waiting.js';
import { readState, type ClusterState } from '../cluster/explain/cluster-state.js';
import { gangText, noGpuText } from '../cluster/explain/waiting-text.js';
import { asksForGpus, type NearestFit, type WaitingAnswer } from '../cluster/explain/why-waiting.js';
import { KeptReading } from './kept-reading.js';
import { sees, type Scope } from './scope.js';

/** Why a pod waits, as far as its reader may see it. */
export interface Explanation {
  readonly atMs: number;
  /** For a pod that asks for none of our resources, what it asks for and how to convert it; absent for others. */
  readonly noGpu?: string;
  /** The first nodes, the best first; absent for a reader who may not list nodes. */
  readonly nodes?: readonly { readonly node: string; readonly fits: boolean; readonly reason: string }[];
  /** Numbers of all nodes, and of those that the pod fits on. */
  readonly total: number;
  readonly fit: number;
  /**
   * The node on which fewest pods must end; absent if it fits, if none has room, or without the right to list nodes.
   */
  readonly nearest?: Omit<NearestFit, 'endsAtMs' | 'pods'> & {
    readonly endsAtMs?: number;
    readonly pods: readonly { readonly namespace: string; readonly name: string; readonly endsAtMs?: number }[];
    /** Pods, and claims, whose names have a space, of namespaces that the reader does not see. */
    readonly others: number;
  };
  /** How many pods of its group fit at the same time; absent for a pod without a group. */
  readonly gang?: string;
}

export type ExplanationAnswer =
  { readonly ok: true; readonly explanation: Explanation } | { readonly ok: false; readonly reason: string };

export interface ExplanationsOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** One reading of the cluster, and one answer for a pod, serve all readers within this time. */
const STATE_MS = 10_000;
/** Pods whose explanations are remembered, and those that may wait for theirs. */
const MAX_KEPT = 256;
const MAX_WAITING = 16;
/** Nodes and pods that an explanation names. */
const MOST_NODES = 100;
const MOST_PODS = 20;

/**
 * Explains why pods wait, as `kubectl gpu explain` does: on demand, one after another, from a list of all nodes and
 * pods that is read at most every ten seconds.
 */
export class Explanations {
  readonly #options: ExplanationsOptions;
  readonly #state: KeptReading<ClusterState>;
  readonly #answers = new Map<string, { readonly untilMs: number; readonly answer: Promise<WaitingAnswer> }>();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: ExplanationsOptions) {
    this.#options = options;
    this.#state = new KeptReading(() => readState(options.api), options.clock, STATE_MS);
  }

  /** Explains a pod to a reader who may see it. Never rejects. */
  async read(namespace: string, name: string, scope: Scope): Promise<ExplanationAnswer> {
    const { clock } = this.#options;
    const key = `${namespace}/${name}`;
    let kept = this.#answers.get(key);
    if (kept === undefined || clock.now() >= kept.untilMs) {
      if (this.#waiting >= MAX_WAITING) return { ok: false, reason: 'too many pods are explained at once; try again' };
      if (this.#answers.size >= MAX_KEPT) this.#answers.clear();
      kept = { untilMs: clock.now() + STATE_MS, answer: this.#inTurn(() => this.#explain(namespace, name)) };
      this.#answers.set(key, kept);
    }
    const { untilMs, answer } = kept;
    try {
      return { ok: true, explanation: shownTo(scope, await answer, untilMs - STATE_MS) };
    } catch (error) {
      this.#answers.delete(key);
      return { ok: false, reason: (error as Error).message };
    }
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return mine.finally(() => (this.#waiting -= 1));
  }

  async #explain(namespace: string, name: string): Promise<WaitingAnswer> {
    const { api } = this.#options;
    const found = await api.request({ method: 'GET', path: podPath(namespace, name) });
    if (!found.ok) throw new KubeError(`pod ${namespace}/${name}`, found);
    return explainWaiting(api, await this.#state.read(), readPod(found.body));
  }
}

/** An answer without nodes that the reader may not list, and without names of pods that it may not see. */
function shownTo(scope: Scope, answer: WaitingAnswer, atMs: number): Explanation {
  const { foreign, nodes, nearest, gang } = answer;
  const counts = { total: nodes.length, fit: nodes.filter(({ fits }) => fits).length };
  const seesNodes = scope.tables.has('nodes');
  return {
    atMs,
    ...counts,
    ...(asksForGpus(answer) ? {} : { noGpu: noGpuText(foreign) }),
    ...(seesNodes
      ? { nodes: nodes.slice(0, MOST_NODES).map(({ node, fits, reason }) => ({ node, fits, reason })) }
      : {}),
    ...(nearest === null || !seesNodes ? {} : { nearest: nearestFor(scope, nearest) }),
    ...(gang === null ? {} : { gang: gangText(gang) }),
  };
}

function nearestFor(scope: Scope, { node, pods, endsAtMs, mayPreempt }: NearestFit): Explanation['nearest'] & object {
  const seen = pods
    .filter(({ namespace, name }) => sees(scope, name.includes(' ') ? 'claims' : 'pods', namespace))
    .slice(0, MOST_PODS);
  return {
    ...{ node, mayPreempt, ...endOf(endsAtMs) },
    pods: seen.map(({ namespace, name, endsAtMs: end }) => ({ namespace, name, ...endOf(end) })),
    others: pods.length - seen.length,
  };
}

function endOf(endsAtMs: number | null): { readonly endsAtMs?: number } {
  return endsAtMs === null ? {} : { endsAtMs };
}
