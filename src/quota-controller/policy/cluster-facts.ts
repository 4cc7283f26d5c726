import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../host/clock.js';
import { Pause } from '../../host/pause.js';
import { Rounds } from '../../host/rounds.js';
import type { EvaluationOptions } from '../../quota/evaluators/evaluate.js';
import { KubeError } from '../../kube/failure.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { QuotaLog } from '../log.js';
import { POLICIES_PATH } from '../names.js';
import { readNode, type Node } from '../../kube/node.js';
import { evaluationBy } from './evaluation.js';
import { readLimitRange, readRuntimeClass, type LimitRange } from './pod-defaults.js';
import { NO_POLICY, readPolicy, type PolicyObject, type QuotaPolicy } from './policy-object.js';

export interface ClusterFactsOptions {
  readonly api: WatchableApi;
  /** What holds whatever the policy says. */
  readonly evaluation: EvaluationOptions;
  readonly log: QuotaLog;
  readonly clock: Clock;
  readonly everyMs?: number;
}

export const NODES_PATH = '/api/v1/nodes';
export const LIMIT_RANGES_PATH = '/api/v1/limitranges';
export const RUNTIME_CLASSES_PATH = '/apis/node.k8s.io/v1/runtimeclasses';
const RETRY_MS = 1_000;

/** What changed: nodes, or what all workloads are read by. */
export type FactsChange = 'policy' | 'nodes';

/** A collection that is followed once the API server has it. */
interface Collection {
  readonly path: string;
  /** Without it nothing can be decided: who may not read it waits. */
  readonly isNeeded: boolean;
  readonly make: () => Informer<unknown>;
}

/**
 * What the evaluation of a workload depends on beside its object, followed at the API server: the QuotaPolicy, nodes,
 * LimitRanges and RuntimeClasses. Collections that the API server does not have, or does not show, count as empty and
 * are looked for again.
 */
export class ClusterFacts {
  readonly #options: ClusterFactsOptions;
  readonly #rounds: Rounds;
  readonly #pause: Pause;
  readonly #listeners = new Set<(change: FactsChange) => void>();
  readonly #followed = new Map<string, Informer<unknown>>();
  readonly #collections: readonly Collection[];
  readonly #nodes = new Map<string, Node>();
  readonly #limitRanges = new Map<string, LimitRange>();
  readonly #overheads = new Map<string, unknown>();
  /** Collections that are not followed, of which the log was told. */
  readonly #told = new Set<string>();
  /** Collections that the API server does not have: their definitions are not installed. */
  readonly #absent = new Set<string>();
  #policy: PolicyObject | null = null;
  #stopped = false;

  constructor(options: ClusterFactsOptions) {
    this.#options = options;
    const { api, clock } = options;
    this.#pause = new Pause(clock);
    this.#rounds = new Rounds(clock, options.everyMs ?? 30_000, () => this.#followMissing());
    this.#collections = [
      {
        path: POLICIES_PATH,
        isNeeded: true,
        make: () => {
          const followed = api.informer({ path: POLICIES_PATH, keep: readPolicy });
          followed.onChange(({ before, after }) => this.#policyChanged(before, after));
          return followed;
        },
      },
      {
        path: NODES_PATH,
        isNeeded: false,
        make: () => {
          const followed = api.informer({ path: NODES_PATH, keep: readNode });
          followed.onChange(({ before, after }) => this.#nodeChanged(before, after));
          return followed;
        },
      },
      {
        path: LIMIT_RANGES_PATH,
        isNeeded: false,
        make: () => {
          const followed = api.informer({ path: LIMIT_RANGES_PATH, keep: readLimitRange });
          followed.onChange(({ before, after }) => {
            if (before !== null) this.#limitRanges.delete(before.key);
            if (after !== null) this.#limitRanges.set(after.key, after);
            if (!isDeepStrictEqual(before, after)) this.#tell('policy');
          });
          return followed;
        },
      },
      {
        path: RUNTIME_CLASSES_PATH,
        isNeeded: false,
        make: () => {
          const followed = api.informer({ path: RUNTIME_CLASSES_PATH, keep: readRuntimeClass });
          followed.onChange(({ before, after }) => {
            if (before !== null) this.#overheads.delete(before.name);
            if (after !== null) this.#overheads.set(after.name, after.overhead);
            if (!isDeepStrictEqual(before, after)) this.#tell('policy');
          });
          return followed;
        },
      },
    ];
  }

  /** The policy as its object has it; null without one. */
  get policyObject(): PolicyObject | null {
    return this.#policy;
  }

  get policy(): QuotaPolicy {
    return this.#policy?.policy ?? NO_POLICY;
  }

  nodes(): readonly Node[] {
    return [...this.#nodes.values()];
  }

  node(name: string): Node | null {
    return this.#nodes.get(name) ?? null;
  }

  /** How workloads are read that ask to be admitted. */
  admission(): EvaluationOptions {
    return evaluationBy(
      {
        policy: this.policy,
        nodes: () => (this.#followed.get(NODES_PATH)?.synced === true ? this.nodes() : null),
        node: (name) => this.node(name),
        limitRanges: () => [...this.#limitRanges.values()],
        overheadOf: (runtimeClass) => this.#overheads.get(runtimeClass),
      },
      this.#options.evaluation,
    );
  }

  /** How workloads are read that exist already. */
  observation(): EvaluationOptions {
    return { ...this.admission(), observes: true };
  }

  /** Calls `listener` when workloads may be read differently. Returns what ends that. */
  onChange(listener: (change: FactsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when everything is known that the API server has. */
  async start(): Promise<void> {
    for (const collection of this.#collections) {
      while (!this.#stopped && !(await this.#follow(collection)) && collection.isNeeded && this.#isRefused(collection))
        await this.#pause.for(RETRY_MS);
    }
    await Promise.all([...this.#followed.values()].map((followed) => followed.whenSynced()));
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    await this.#rounds.stop();
    await Promise.all([...this.#followed.values()].map((followed) => followed.stop()));
  }

  async #followMissing(): Promise<void> {
    for (const collection of this.#collections) if (!this.#stopped) await this.#follow(collection);
  }

  /** Follows a collection if the API server shows it; false where it does not. */
  async #follow(collection: Collection): Promise<boolean> {
    const { api, log } = this.#options;
    const { path } = collection;
    if (this.#followed.has(path)) return true;
    const answer = await api.request({ method: 'GET', path, query: { limit: '1' } });
    if (answer.ok) {
      this.#told.delete(path);
      const followed = collection.make();
      this.#followed.set(path, followed);
      followed.start();
      return true;
    }
    if (!this.#told.has(path))
      log.warn({ err: new KubeError(`${path} cannot be listed`, answer) }, 'a collection is not followed; retrying');
    this.#told.add(path);
    if (answer.code === 'not-found') this.#absent.add(path);
    else this.#absent.delete(path);
    return false;
  }

  #isRefused({ path }: Collection): boolean {
    return !this.#absent.has(path);
  }

  #policyChanged(before: PolicyObject | null, after: PolicyObject | null): void {
    const { log } = this.#options;
    this.#policy = after;
    if (before !== null && after !== null && before.generation === after.generation) return;
    const problems = after?.problems ?? [];
    if (problems.length > 0) log.warn({ problems }, 'parts of the quota policy cannot be read; it holds without them');
    else log.info({ generation: after?.generation ?? null }, 'the quota policy changed');
    this.#tell('policy');
  }

  #nodeChanged(before: Node | null, after: Node | null): void {
    if (after !== null) this.#nodes.set(after.name, after);
    else if (before !== null) this.#nodes.delete(before.name);
    const seen = (node: Node | null): unknown =>
      node === null ? null : [node.name, node.labels, node.taints, node.takesPods];
    if (!isDeepStrictEqual(seen(before), seen(after))) this.#tell('nodes');
  }

  #tell(change: FactsChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
