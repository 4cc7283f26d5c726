import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import { Pause } from '../../host/pause.js';
import { Rounds } from '../../host/rounds.js';
import type { EvaluationOptions } from '../../quota/index.js';
import { ALL_NODES } from '../../kube/api-path.js';
import { KubeError } from '../../kube/failure.js';
import type { Informer } from '../../kube/informer.js';
import type { WatchableApi } from '../../kube/watchable-api.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { GROUPS_PATH, POLICIES_PATH } from '../../kube/quota/names.js';
import { readNode, type Node } from '../../kube/node.js';
import { listAll } from '../../kube/list-all.js';
import { readGroup, type GroupObject } from '../../kube/quota/group-object.js';
import { DefaultGroups, readNamespace } from './default-groups.js';
import { evaluationBy } from './evaluation.js';
import { readLimitRange, readRuntimeClass, type LimitRange } from './pod-defaults.js';
import { NO_POLICY, readPolicy, type PolicyObject, type QuotaPolicy } from './policy-object.js';

export interface ClusterFactsOptions {
  readonly api: WatchableApi;
  /** Options that the policy does not change. */
  readonly evaluation: EvaluationOptions;
  /** The namespace of the service, whose objects are never charged without a label. */
  readonly ownNamespace: string;
  readonly log: StructuredLog;
  readonly clock: Clock;
  readonly everyMs?: number;
}

export const NAMESPACES_PATH = '/api/v1/namespaces';
export const LIMIT_RANGES_PATH = '/api/v1/limitranges';
export const RUNTIME_CLASSES_PATH = '/apis/node.k8s.io/v1/runtimeclasses';
const RETRY_MS = 1_000;

/**
 * The changed facts: the policy, defaults and overheads (all workloads are read again), nodes, or which group is
 * charged for the objects of a namespace that name none.
 */
export type FactsChange = 'policy' | 'nodes' | 'namespaces';

/** A collection with an informer that is created once the API server serves the collection. */
interface Collection {
  readonly path: string;
  /** Whether `start` waits until the service may list the collection. */
  readonly isRequired: boolean;
  /** Whether something depends on the collection; it is not listed before. By default always. */
  readonly isWanted?: () => boolean;
  readonly create: () => Informer<unknown>;
}

/**
 * Informers of what the evaluation of a workload needs beside the workload itself: the QuotaPolicy, nodes,
 * LimitRanges, RuntimeClasses, and namespaces from the first group on that names some. A collection that the API server
 * does not serve, or that the service may not list, counts as empty and is tried again.
 */
export class ClusterFacts {
  readonly #options: ClusterFactsOptions;
  readonly #rounds: Rounds;
  readonly #pause: Pause;
  readonly #listeners = new Listeners<FactsChange>();
  readonly #informers = new Map<string, Informer<unknown>>();
  readonly #collections: readonly Collection[];
  readonly #nodes = new Map<string, Node>();
  readonly #limitRanges = new Map<string, LimitRange>();
  readonly #overheads = new Map<string, unknown>();
  readonly #defaultGroups: DefaultGroups;
  /** Collections whose failure was logged. */
  readonly #reported = new Set<string>();
  /** Collections that the API server does not serve because their definitions are not installed. */
  readonly #absent = new Set<string>();
  #policy: PolicyObject | null = null;
  #stopped = false;

  constructor(options: ClusterFactsOptions) {
    this.#options = options;
    const { api, clock } = options;
    this.#pause = new Pause(clock);
    this.#defaultGroups = new DefaultGroups(options.ownNamespace);
    this.#rounds = new Rounds(clock, options.everyMs ?? 30_000, () => this.#retryMissing());
    this.#collections = [
      {
        path: POLICIES_PATH,
        isRequired: true,
        create: () => {
          const informer = api.informer({ path: POLICIES_PATH, keep: readPolicy });
          informer.onChange(({ before, after }) => this.#policyChanged(before, after));
          return informer;
        },
      },
      {
        path: ALL_NODES,
        isRequired: false,
        create: () => {
          const informer = api.informer({ path: ALL_NODES, keep: readNode });
          informer.onChange(({ before, after }) => this.#nodeChanged(before, after));
          return informer;
        },
      },
      {
        path: NAMESPACES_PATH,
        isRequired: false,
        isWanted: () => this.#defaultGroups.isUsed,
        create: () => {
          const informer = api.informer({ path: NAMESPACES_PATH, isMetadataOnly: true, keep: readNamespace });
          informer.onChange(({ before, after }) => {
            const { name } = after ?? before ?? { name: '' };
            if (this.#defaultGroups.namespaceChanged(name, after?.labels ?? null)) this.#notify('namespaces');
          });
          return informer;
        },
      },
      {
        path: LIMIT_RANGES_PATH,
        isRequired: false,
        create: () => {
          const informer = api.informer({ path: LIMIT_RANGES_PATH, keep: readLimitRange });
          informer.onChange(({ before, after }) => {
            if (before !== null) this.#limitRanges.delete(before.key);
            if (after !== null) this.#limitRanges.set(after.key, after);
            if (!isDeepStrictEqual(before, after)) this.#notify('policy');
          });
          return informer;
        },
      },
      {
        path: RUNTIME_CLASSES_PATH,
        isRequired: false,
        create: () => {
          const informer = api.informer({ path: RUNTIME_CLASSES_PATH, keep: readRuntimeClass });
          informer.onChange(({ before, after }) => {
            if (before !== null) this.#overheads.delete(before.name);
            if (after !== null) this.#overheads.set(after.name, after.overhead);
            if (!isDeepStrictEqual(before, after)) this.#notify('policy');
          });
          return informer;
        },
      },
    ];
  }

  /** The policy object; null without one. */
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

  /** Which groups are charged for objects that name none. */
  get defaultGroups(): DefaultGroups {
    return this.#defaultGroups;
  }

  /** Notes the object of a group; null for a deleted one. */
  groupChanged(name: string, object: GroupObject | null): void {
    const claim = object === null || object.terminating ? null : object.defaultFor;
    if (!this.#defaultGroups.groupChanged(name, claim)) return;
    this.#notify('namespaces');
    this.#rounds.now();
  }

  /** Options for evaluating workloads under admission. */
  admission(): EvaluationOptions {
    return evaluationBy(
      {
        policy: this.policy,
        nodes: () => (this.#informers.get(ALL_NODES)?.synced === true ? this.nodes() : null),
        node: (name) => this.node(name),
        defaultGroup: this.#defaultGroups.isUsed ? (namespace) => this.#defaultGroups.groupOf(namespace) : null,
        limitRanges: () => [...this.#limitRanges.values()],
        overheadOf: (runtimeClass) => this.#overheads.get(runtimeClass),
      },
      this.#options.evaluation,
    );
  }

  /** Options for evaluating workloads that exist. */
  observation(): EvaluationOptions {
    return { ...this.admission(), observes: true };
  }

  /** Calls `listener` when workloads may be read differently. Returns a function that ends this. */
  onChange(listener: (change: FactsChange) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Resolves when all collections that the API server serves are synced. */
  async start(): Promise<void> {
    for (const collection of this.#collections) {
      while (
        !this.#stopped &&
        !(await this.#watch(collection)) &&
        collection.isRequired &&
        this.#isForbidden(collection)
      )
        await this.#pause.for(RETRY_MS);
    }
    // The first workloads are read with the namespaces of all groups.
    for (const group of await this.#listGroups()) this.groupChanged(group.spec.name, group);
    await this.#retryMissing();
    await Promise.all([...this.#informers.values()].map((informer) => informer.whenSynced()));
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    await this.#rounds.stop();
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }

  async #listGroups(): Promise<readonly GroupObject[]> {
    const { api, log } = this.#options;
    try {
      return (await listAll(api, 'the quota groups', GROUPS_PATH)).map(readGroup);
    } catch (error) {
      log.warn(
        { err: error },
        'the quota groups cannot be listed; the namespaces of groups are known when the watch shows them',
      );
      return [];
    }
  }

  async #retryMissing(): Promise<void> {
    for (const collection of this.#collections) if (!this.#stopped) await this.#watch(collection);
  }

  /** Starts the informer of a collection; false if the collection cannot be listed. */
  async #watch(collection: Collection): Promise<boolean> {
    const { api, log } = this.#options;
    const { path, isWanted = () => true } = collection;
    if (this.#informers.has(path) || !isWanted()) return true;
    const answer = await api.request({ method: 'GET', path, query: { limit: '1' } });
    if (this.#stopped || this.#informers.has(path)) return true;
    if (answer.ok) {
      this.#reported.delete(path);
      const informer = collection.create();
      this.#informers.set(path, informer);
      informer.start();
      return true;
    }
    if (!this.#reported.has(path))
      log.warn({ err: new KubeError(`${path} cannot be listed`, answer) }, 'listing a collection failed; retrying');
    this.#reported.add(path);
    if (answer.code === 'not-found') this.#absent.add(path);
    else this.#absent.delete(path);
    return false;
  }

  #isForbidden({ path }: Collection): boolean {
    return !this.#absent.has(path);
  }

  #policyChanged(before: PolicyObject | null, after: PolicyObject | null): void {
    const { log } = this.#options;
    this.#policy = after;
    if (before !== null && after !== null && before.generation === after.generation) return;
    const problems = after?.problems ?? [];
    if (problems.length > 0) log.warn({ problems }, 'parts of the quota policy cannot be read and are ignored');
    else log.info({ generation: after?.generation ?? null }, 'the quota policy changed');
    this.#notify('policy');
  }

  #nodeChanged(before: Node | null, after: Node | null): void {
    if (after !== null) this.#nodes.set(after.name, after);
    else if (before !== null) this.#nodes.delete(before.name);
    const relevant = (node: Node | null): unknown =>
      node === null ? null : [node.name, node.labels, node.taints, node.takesPods, node.allocatable];
    if (!isDeepStrictEqual(relevant(before), relevant(after))) this.#notify('nodes');
  }

  #notify(change: FactsChange): void {
    this.#listeners.emit(change);
  }
}
