import { systemClock, type Clock } from '../../host/clock.js';
import type { StructuredLog } from '../../host/structured-log.js';
import { createLog } from '../../host/log.js';
import { KubeError } from '../failure.js';
import { WatchInformer, type InformerTiming, type ObjectChange } from '../informer.js';
import { listAll } from '../list-all.js';
import type { KubeClient } from '../client.js';
import { openUserClient, type ClusterAccess } from '../open-client.js';
import { ALLOCATIONS_PATH, CONSUMERS_PATH, GROUPS_PATH, POLICIES_PATH, itemPath } from './names.js';
import type { Allocation, Consumer, Group, Policy, QuotaObject } from './quota-objects.js';

/*
 * The package's `gpu-manager/quota-client`: the quota objects of a cluster, for controllers of others. It reads only.
 */
export { KubeError, type KubeFailureCode } from '../failure.js';
export { formatQuantity, parseQuantity } from '../../quota/index.js';
export type { ObjectChange } from '../informer.js';
export type * from './quota-objects.js';

type AnyObject = QuotaObject<unknown, unknown>;

/** The cluster, found as kubectl does: a kubeconfig, KUBECONFIG, the home directory, or the pod's service account. */
export interface QuotaClientOptions extends ClusterAccess {
  /** Gets the failures of watches, which are tried again for ever; by default JSON lines on standard error. */
  readonly log?: StructuredLog;
}

/** Which objects of a collection. */
export interface Selection {
  /** In the form of kubectl: `team=vision,stage!=test`. */
  readonly labelSelector?: string;
}

interface Connection {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: StructuredLog;
  readonly timing?: Partial<InformerTiming>;
  /** What `close` stops. */
  readonly caches: Set<{ stop(): Promise<void> }>;
}

/** Lists, reads and watches the quota objects of a cluster. */
export class QuotaClient {
  readonly groups: QuotaCollection<Group>;
  readonly consumers: QuotaCollection<Consumer>;
  readonly allocations: QuotaCollection<Allocation>;
  readonly policies: QuotaCollection<Policy>;
  readonly #connection: Connection;

  /** Programs use `open`. */
  private constructor(connection: Connection) {
    this.#connection = connection;
    this.groups = new QuotaCollection(connection, 'the quota groups', GROUPS_PATH);
    this.consumers = new QuotaCollection(connection, 'the Consumers', CONSUMERS_PATH);
    this.allocations = new QuotaCollection(connection, 'the Allocations', ALLOCATIONS_PATH);
    this.policies = new QuotaCollection(connection, 'the quota policies', POLICIES_PATH);
  }

  /** Rejects if the credentials cannot be used. An API server that does not answer is the error of later calls. */
  static async open({ log, ...access }: QuotaClientOptions = {}): Promise<QuotaClient> {
    const { client } = await openUserClient(access, systemClock);
    return new QuotaClient({ client, clock: systemClock, log: log ?? createLog('warn'), caches: new Set() });
  }

  /** Stops all caches and closes the connections. */
  async close(): Promise<void> {
    const { client, caches } = this.#connection;
    await Promise.all([...caches].map((cache) => cache.stop()));
    client.close();
  }
}

/** The objects of one kind. */
export class QuotaCollection<T extends AnyObject> {
  readonly #connection: Connection;
  readonly #what: string;
  readonly #path: string;

  /** `QuotaClient` has the collections. */
  constructor(connection: Connection, what: string, path: string) {
    this.#connection = connection;
    this.#what = what;
    this.#path = path;
  }

  /** All objects as they are now. Rejects with a `KubeError`. */
  async list({ labelSelector }: Selection = {}): Promise<readonly T[]> {
    const query: Record<string, string> = labelSelector === undefined ? {} : { labelSelector };
    return (await listAll(this.#connection.client, this.#what, this.#path, query)) as readonly T[];
  }

  /** One object as it is now; null if there is none. Rejects with a `KubeError`. */
  async get(name: string): Promise<T | null> {
    const answer = await this.#connection.client.request({ method: 'GET', path: itemPath(this.#path, name) });
    if (answer.ok) return answer.body as T;
    if (answer.code === 'not-found') return null;
    throw new KubeError(`${name} of ${this.#what} cannot be read`, answer);
  }

  /** Begins to follow the objects, until `stop` of the cache or `close` of the client. */
  watch(selection: Selection = {}): QuotaCache<T> {
    const { caches } = this.#connection;
    const cache = new QuotaCache<T>(this.#connection, this.#path, selection, () => void caches.delete(cache));
    caches.add(cache);
    return cache;
  }
}

/**
 * Objects that are followed: consistent, but as old as the connection is silent. They are shared: change copies only.
 */
export class QuotaCache<T extends AnyObject> {
  readonly #informer: WatchInformer<T>;
  readonly #byName = new Map<string, T>();
  readonly #stopped: () => void;

  /** `QuotaCollection.watch` makes caches. */
  constructor(connection: Connection, path: string, { labelSelector }: Selection, stopped: () => void) {
    const { client, clock, log, timing } = connection;
    this.#stopped = stopped;
    const keep = (object: unknown): T => object as T;
    this.#informer = new WatchInformer({ client, clock, log, path, labelSelector, keep, ...(timing && { timing }) });
    // Comes before the listeners of programs, which then find in `get` what they are told.
    this.#informer.onChange(({ before, after }) => {
      if (after !== null) this.#byName.set(after.metadata.name, after);
      else if (before !== null) this.#byName.delete(before.metadata.name);
    });
    this.#informer.start();
  }

  /** Resolves once the objects were listed, also if that takes many tries; and when the cache stops. */
  whenSynced(): Promise<void> {
    return this.#informer.whenSynced();
  }

  /** Whether the objects were listed. */
  get synced(): boolean {
    return this.#informer.synced;
  }

  /** Milliseconds without a connection; 0 while connected. */
  get silentMs(): number {
    return this.#informer.silentMs;
  }

  /** The newest known state of an object; null if none is known. */
  get(name: string): T | null {
    return this.#byName.get(name) ?? null;
  }

  /** All known objects, in any order. */
  values(): readonly T[] {
    return this.#informer.values();
  }

  /**
   * Calls `listener` with every change from now on: right after `watch`, that begins with each object of the first
   * list. `before` is null for a new object, `after` for a deleted one. A listener that throws is logged and stays. The
   * returned function unsubscribes.
   */
  onChange(listener: (change: ObjectChange<T>) => void): () => void {
    return this.#informer.onChange(listener);
  }

  /** Resolves when the watch is closed; the objects stay readable. */
  async stop(): Promise<void> {
    this.#stopped();
    await this.#informer.stop();
  }
}
