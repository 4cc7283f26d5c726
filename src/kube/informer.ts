import type { Clock } from '../host/clock.js';
import { Listeners } from '../host/listeners.js';
import type { StructuredLog } from '../host/structured-log.js';
import { METADATA_LIST, METADATA_ONLY, type KubeClient, type OpenWatch } from './client.js';
import { failure, type KubeFailure, type KubeFailureCode } from './failure.js';
import { Pause } from '../host/pause.js';

/** A collection that is watched: its content may be late, but is always consistent. */
export interface Informer<T> {
  /** Starts without waiting for the server. */
  start(): void;
  stop(): Promise<void>;
  /** True once the collection has been listed. */
  readonly synced: boolean;
  /** Time without a connection; 0 while connected. */
  readonly silentMs: number;
  /** Resolves once the collection was listed and listeners know its objects, or the informer was stopped. */
  whenSynced(): Promise<void>;
  /** All known objects, in any order; empty before the first list. */
  values(): readonly T[];
  /** Calls `listener` with every change. The returned function unsubscribes. */
  onChange(listener: (change: ObjectChange<T>) => void): () => void;
}

export interface InformerOptions<T> {
  readonly client: KubeClient;
  /** Path of the collection. */
  readonly path: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /**
   * Page size of lists; the server reads paged lists from its storage; null: one list from its cache, which is cheap
   * for few objects.
   */
  readonly pageSize?: number | null;
  /** Whether the server sends only the metadata of objects; `keep` then gets objects without other fields. */
  readonly isMetadataOnly?: boolean;
  /** The reduced copy of an object; null for objects that are not wanted, even if the server sends them. */
  readonly keep: (object: unknown) => T | null;
  readonly clock: Clock;
  readonly log: StructuredLog;
  readonly timing?: Partial<InformerTiming>;
  /** 0 to 1, for jitter. */
  readonly random?: () => number;
}

export interface InformerTiming {
  /** Shortest time between the starts of two connections. */
  readonly floorMs: number;
  /** First and longest delay after a failure; it doubles in between. */
  readonly backoffMs: number;
  readonly longestBackoffMs: number;
  /** Servers send a bookmark every minute: after two missing ones the peer is assumed dead. */
  readonly idleMs: number;
  /** Lifetime of a watch that is requested from the server. */
  readonly watchMs: number;
  /** After this long the collection is listed again even if every watch succeeded, so that a lost event is noticed. */
  readonly relistMs: number;
}

export const INFORMER_TIMING: InformerTiming = {
  floorMs: 1_000,
  backoffMs: 1_000,
  longestBackoffMs: 30_000,
  idleMs: 150_000,
  watchMs: 240_000,
  relistMs: 1_800_000,
};

/** An object was added (`before` null), changed, or deleted (`after` null). */
export interface ObjectChange<T> {
  readonly before: T | null;
  readonly after: T | null;
}

/**
 * After these failures a watch resumes at its last version. After others, events may be missing, so the collection is
 * listed again.
 */
const RESUMABLE: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>([
  'unreachable',
  'too-many-requests',
  'unauthorized',
  'forbidden',
]);

interface Entry<T> {
  readonly resourceVersion: string;
  readonly value: T;
}

/**
 * Follows a collection: lists it, watches it from there, and starts again whenever the watch ends: closed, broken, with
 * 410, or silent. Keeps reduced copies by UID. Its content may be old but is consistent: a list replaces everything at
 * once.
 */
export class WatchInformer<T> implements Informer<T> {
  readonly #options: InformerOptions<T>;
  readonly #timing: InformerTiming;
  readonly #random: () => number;
  readonly #listeners = new Listeners<ObjectChange<T>>();
  readonly #failures = new Map<KubeFailureCode, number>();
  readonly #pause: Pause;
  #entries: Map<string, Entry<T>> | null = null;
  /** Last version of a list or an event, from which the next watch and the next list start. */
  #resourceVersion = '';
  /** The server's cache is too old: read from its storage. */
  #fresh = false;
  #listedAt = -Infinity;
  #silentSince: number | null;
  #watch: OpenWatch | null = null;
  #running: Promise<void> | null = null;
  #stopped = false;
  #tellSynced: () => void = () => undefined;
  /** Calls of `refresh` that wait for a list that starts after them. */
  #refreshing: (() => void)[] = [];
  readonly #whenSynced = new Promise<void>((resolve) => (this.#tellSynced = resolve));
  #lists = 0;
  #watches = 0;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.#timing = { ...INFORMER_TIMING, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#pause = new Pause(options.clock);
    this.#silentSince = options.clock.now();
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    this.#watch?.close();
    await this.#running;
    this.#tellSynced();
  }

  get synced(): boolean {
    return this.#entries !== null;
  }

  whenSynced(): Promise<void> {
    return this.#whenSynced;
  }

  values(): T[] {
    return [...(this.#entries?.values() ?? [])].map((entry) => entry.value);
  }

  /** Lists again from the server's storage; resolves once everything is known that was stored before this call. */
  refresh(): Promise<void> {
    this.#listedAt = -Infinity;
    this.#fresh = true;
    const refreshed = new Promise<void>((resolve) => this.#refreshing.push(resolve));
    this.#watch?.close();
    return refreshed;
  }

  /** Time without a connection; 0 while connected. */
  get silentMs(): number {
    return this.#silentSince === null ? 0 : this.#options.clock.now() - this.#silentSince;
  }

  /** Counters since the start, for metrics. */
  get counts(): {
    readonly lists: number;
    readonly watches: number;
    readonly failures: ReadonlyMap<KubeFailureCode, number>;
  } {
    return { lists: this.#lists, watches: this.#watches, failures: this.#failures };
  }

  onChange(listener: (change: ObjectChange<T>) => void): () => void {
    return this.#listeners.add(listener);
  }

  async #run(): Promise<void> {
    const { clock, log, path } = this.#options;
    let failed = 0;
    while (!this.#stopped) {
      const startedAt = clock.now();
      const end = await this.#cycle();
      this.#silentSince ??= clock.now();
      if (this.#stopped) return;
      const lived = clock.now() - startedAt;
      if (end.ok) {
        // The watch ended regularly but at once: a proxy that closes every watch must not cause constant reconnects.
        failed = lived < this.#timing.floorMs ? failed + 1 : 0;
      } else {
        this.#failures.set(end.code, (this.#failures.get(end.code) ?? 0) + 1);
        if (lived > this.#timing.longestBackoffMs) failed = 0;
        failed += 1;
        log.warn(
          { path, code: end.code, reason: end.message, attempt: failed },
          'the watch at the API server failed; retrying',
        );
      }
      const asked = end.ok ? 0 : Math.min(end.retryAfterMs ?? 0, 2 * this.#timing.longestBackoffMs);
      await this.#pause.for(Math.max(this.#backoff(failed), asked, this.#timing.floorMs - lived));
    }
  }

  /**
   * 0 without failures; else a doubling delay, minus up to half of it at random, so that the nodes of a cluster do not
   * reconnect together.
   */
  #backoff(failed: number): number {
    if (failed === 0) return 0;
    const { backoffMs, longestBackoffMs } = this.#timing;
    const full = Math.min(longestBackoffMs, backoffMs * 2 ** Math.min(failed - 1, 16));
    return Math.max(backoffMs, full * (0.5 + this.#random() / 2));
  }

  async #cycle(): Promise<{ readonly ok: true } | KubeFailure> {
    const { clock } = this.#options;
    if (this.#resourceVersion === '' || clock.now() - this.#listedAt >= this.#timing.relistMs) {
      const listed = await this.#list();
      if (!listed.ok || this.#stopped) return listed;
    }
    const watched = await this.#follow();
    if (!watched.ok && !RESUMABLE.has(watched.code)) this.#listedAt = -Infinity;
    return watched;
  }

  // --- list -------------------------------------------------------------------------------------------------------

  async #list(): Promise<{ readonly ok: true } | KubeFailure> {
    const paged = this.#fresh || (this.#options.pageSize ?? null) !== null;
    const limit = String(this.#options.pageSize ?? 500);
    // From the cache, but not older than the last version: another replica may lag behind.
    const first: Record<string, string> = paged ? { limit } : { resourceVersion: this.#resourceVersion || '0' };
    const entries = new Map<string, Entry<T>>();
    let page: Record<string, string> = first;
    const refreshing = this.#refreshing;
    this.#refreshing = [];
    for (;;) {
      this.#lists += 1;
      const answer = await this.#options.client.request({
        method: 'GET',
        path: this.#options.path,
        query: { ...this.#selectors(), ...page },
        accept: this.#options.isMetadataOnly === true ? METADATA_LIST : undefined,
      });
      if (!answer.ok) {
        this.#refreshing.push(...refreshing);
        this.#fresh = answer.code === 'too-new' || answer.code === 'expired' || this.#refreshing.length > 0;
        return answer;
      }
      const list = readList(answer.body);
      if (list === null) return failure('malformed', 'the answer is not a list');
      for (const object of list.items) this.#take(entries, object);
      if (list.next === '') {
        this.#settle(entries, list.resourceVersion);
        for (const tell of refreshing) tell();
        return { ok: true };
      }
      page = { limit, continue: list.next };
    }
  }

  #settle(entries: Map<string, Entry<T>>, resourceVersion: string): void {
    this.#fresh = false;
    this.#resourceVersion = resourceVersion;
    this.#listedAt = this.#options.clock.now();
    this.#silentSince = this.#listedAt;
    this.#replace(entries);
    this.#tellSynced();
  }

  #selectors(): Record<string, string> {
    const { fieldSelector, labelSelector } = this.#options;
    return {
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
  }

  #take(entries: Map<string, Entry<T>>, object: unknown): void {
    const { uid, resourceVersion } = identityOf(object);
    const value = uid === '' ? null : this.#options.keep(object);
    if (value !== null) entries.set(uid, { resourceVersion, value });
  }

  #replace(entries: Map<string, Entry<T>>): void {
    const before = this.#entries ?? new Map<string, Entry<T>>();
    this.#entries = entries;
    for (const [uid, entry] of before) if (!entries.has(uid)) this.#tell(entry.value, null);
    for (const [uid, entry] of entries) {
      const known = before.get(uid);
      if (known === undefined || known.resourceVersion !== entry.resourceVersion)
        this.#tell(known?.value ?? null, entry.value);
    }
  }

  // --- watch ------------------------------------------------------------------------------------------------------

  async #follow(): Promise<{ readonly ok: true } | KubeFailure> {
    this.#watches += 1;
    const { watchMs, idleMs } = this.#timing;
    const query = {
      ...this.#selectors(),
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#resourceVersion,
      timeoutSeconds: String(Math.ceil((watchMs * (1 + this.#random() / 4)) / 1000)),
    };
    let wrong: KubeFailure | null = null;
    const watch = this.#options.client.watch(
      {
        path: this.#options.path,
        query,
        idleMs,
        accept: this.#options.isMetadataOnly === true ? METADATA_ONLY : undefined,
      },
      {
        opened: () => (this.#silentSince = null),
        event: (event) => {
          if (wrong !== null) return;
          wrong = this.#event(event);
          if (wrong !== null) watch.close();
        },
      },
    );
    this.#watch = watch;
    if (this.#stopped) watch.close();
    const ended = await watch.ended;
    this.#watch = null;
    return wrong ?? ended;
  }

  #event(event: unknown): KubeFailure | null {
    const { type, object } = (event ?? {}) as { readonly type?: unknown; readonly object?: unknown };
    if (type === 'ERROR') return errorEvent(object);
    const { uid, resourceVersion } = identityOf(object);
    if (resourceVersion === '') return failure('malformed', 'an event without a resourceVersion');
    if (isOlder(resourceVersion, this.#resourceVersion)) {
      // The server's storage was restored from a backup. A watch would skip everything until it has caught up.
      this.#fresh = true;
      return failure('too-new', `resourceVersion ${resourceVersion} after ${this.#resourceVersion}`);
    }
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED')
      this.#apply(uid, type === 'DELETED' ? null : object, resourceVersion);
    else if (type !== 'BOOKMARK') return failure('malformed', `an event of type ${String(type)}`);
    this.#resourceVersion = resourceVersion;
    return null;
  }

  #apply(uid: string, object: unknown, resourceVersion: string): void {
    const entries = (this.#entries ??= new Map<string, Entry<T>>());
    const known = entries.get(uid);
    const value = object === null || uid === '' ? null : this.#options.keep(object);
    if (value !== null) entries.set(uid, { resourceVersion, value });
    else if (!entries.delete(uid)) return;
    if (known?.resourceVersion !== resourceVersion || value === null) this.#tell(known?.value ?? null, value);
  }

  #tell(before: T | null, after: T | null): void {
    for (const listener of this.#listeners) {
      try {
        listener({ before, after });
      } catch (error) {
        this.#options.log.error({ err: error, path: this.#options.path }, 'a listener failed');
      }
    }
  }
}

/** Within one watch resourceVersions only grow; versions that are not numbers cannot be compared. */
function isOlder(resourceVersion: string, than: string): boolean {
  return /^\d+$/.test(resourceVersion) && /^\d+$/.test(than) && BigInt(resourceVersion) < BigInt(than);
}

function identityOf(object: unknown): { readonly uid: string; readonly resourceVersion: string } {
  const { metadata } = (object ?? {}) as {
    readonly metadata?: { readonly uid?: unknown; readonly resourceVersion?: unknown } | null;
  };
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { uid: text(metadata?.uid), resourceVersion: text(metadata?.resourceVersion) };
}

function readList(
  body: unknown,
): { readonly items: readonly unknown[]; readonly resourceVersion: string; readonly next: string } | null {
  const { items, metadata } = (body ?? {}) as {
    readonly items?: unknown;
    readonly metadata?: { readonly resourceVersion?: unknown; readonly continue?: unknown };
  };
  const resourceVersion = metadata?.resourceVersion;
  if (typeof resourceVersion !== 'string' || (items !== null && !Array.isArray(items))) return null;
  const next = metadata?.continue;
  return { items: (items ?? []) as readonly unknown[], resourceVersion, next: typeof next === 'string' ? next : '' };
}

function errorEvent(object: unknown): KubeFailure {
  const { code, message } = (object ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return failure(code === 410 ? 'expired' : 'server-error', typeof message === 'string' ? message : 'an error event');
}
