import type { ServerResponse } from 'node:http';
import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { TABLE_NAMES, type Changes, type ClusterModel, type Keyed, type TableName } from './cluster-model.js';
import type { Reader } from './readers.js';
import { sameScope, scopeKey, visible, type Scope } from './scope.js';

/** Interval in which browsers get changes. */
const TICK_MS = 1_000;
/** A reader with this much unread data gets no more until it has read it. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** A reader that has read nothing for this long is disconnected. */
const MAX_SILENT_MS = 30_000;
/** Interval in which the rights of readers are asked for again. */
const RIGHTS_MS = 30_000;
export const MAX_READERS = 128;
/** Scopes whose rows are kept until the next tick. */
const MAX_SCOPES = 16;

/** Facts about the console itself and its sources, which every reader gets. */
export interface ConsoleState {
  readonly version: string;
  readonly cluster: string;
  /** Whether it has history from Prometheus. */
  readonly history: boolean;
  /** Time without a connection in milliseconds, by collection that is late; empty if none is. */
  readonly late: Readonly<Record<string, number>>;
  /** Why tables have no rows, as a sentence, by table; empty if all are watched. */
  readonly absent: Readonly<Partial<Record<TableName, string>>>;
}

export interface ClusterFeedOptions {
  readonly model: ClusterModel;
  readonly state: () => ConsoleState;
  readonly clock: Clock;
  readonly log: Log;
}

interface Stream {
  readonly response: ServerResponse;
  readonly reader: Reader;
  scope: Scope;
  /** Whether it missed a change and needs all rows again. */
  stale: boolean;
  stuckSinceMs: number | null;
  /** Namespaces that had rows when its rights were asked for, by table. */
  known: ReadonlyMap<TableName, ReadonlySet<string>>;
  asking: boolean;
  askedAtMs: number;
}

/**
 * Server-sent events for browsers: `rows` once and whenever the reader's rights change, `changes` for the rows that
 * changed within a second, `console` every second. One pass over the changes serves all readers; a slow reader misses
 * changes and gets all rows when it has caught up.
 */
export class ClusterFeed {
  readonly #options: ClusterFeedOptions;
  readonly #streams = new Set<Stream>();
  /** The rows since the last tick, by scope; the changes that were taken then follow. */
  readonly #rowsOf = new Map<string, Buffer>();
  #cancel: () => void = () => undefined;

  constructor(options: ClusterFeedOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#streams.size;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(TICK_MS, () => this.#tick());
  }

  stop(): void {
    this.#cancel();
    for (const { response } of this.#streams) response.destroy();
    this.#streams.clear();
  }

  /** Adds a reader; false if there are too many. The response's headers have been written already. */
  join(response: ServerResponse, reader: Reader, scope: Scope): boolean {
    if (this.#streams.size >= MAX_READERS) return false;
    const now = this.#options.clock.now();
    const known = this.#options.model.namespaces();
    const stream: Stream = {
      ...{ response, reader, scope, known },
      ...{ stale: false, stuckSinceMs: null, asking: false, askedAtMs: now },
    };
    this.#streams.add(stream);
    response.on('close', () => this.#streams.delete(stream));
    response.on('error', () => this.#streams.delete(stream));
    response.write(this.#state());
    this.#writeRows(response, scope);
    return true;
  }

  /** All rows of a scope as JSON, rendered once between two ticks. */
  rows(scope: Scope): Buffer {
    const key = scopeKey(scope);
    const kept = this.#rowsOf.get(key);
    if (kept !== undefined) return kept;
    const rows = Buffer.from(rowsText(this.#options.model, scope));
    if (this.#rowsOf.size >= MAX_SCOPES) this.#rowsOf.clear();
    this.#rowsOf.set(key, rows);
    return rows;
  }

  #state(): string {
    return message('console', JSON.stringify(this.#options.state()));
  }

  #writeRows(response: ServerResponse, scope: Scope): void {
    response.write('event: rows\ndata: ');
    response.write(this.rows(scope));
    response.write('\n\n');
  }

  #tick(): void {
    try {
      const changes = this.#options.model.takeChanges();
      this.#rowsOf.clear();
      const state = this.#state();
      for (const stream of [...this.#streams]) this.#tell(stream, changes, state);
    } catch (error) {
      this.#options.log.error({ err: error }, 'sending the changes of the cluster failed');
    }
  }

  #tell(stream: Stream, changes: Changes | null, state: string): void {
    const { response, scope } = stream;
    const now = this.#options.clock.now();
    if (response.writableLength > MAX_UNREAD_BYTES) {
      stream.stale ||= changes !== null;
      stream.stuckSinceMs ??= now;
      if (now - stream.stuckSinceMs >= MAX_SILENT_MS) this.#drop(stream);
      return;
    }
    stream.stuckSinceMs = null;
    if (stream.stale) this.#writeRows(response, scope);
    response.write((stream.stale || changes === null ? '' : changesText(scope, changes)) + state);
    stream.stale = false;
    const waitMs = changes !== null && hasNewNamespace(stream, changes) ? 0 : RIGHTS_MS;
    if (now - stream.askedAtMs >= waitMs && !stream.asking) void this.#askAgain(stream);
  }

  /** Namespaces may be new, and rights may have changed. */
  async #askAgain(stream: Stream): Promise<void> {
    stream.asking = true;
    stream.known = this.#options.model.namespaces();
    const scope = await stream.reader.scope();
    stream.asking = false;
    stream.askedAtMs = this.#options.clock.now();
    if (scope === 'unknown') this.#drop(stream);
    else if (scope !== 'unavailable' && !sameScope(scope, stream.scope)) {
      stream.scope = scope;
      stream.stale = true;
    }
  }

  #drop(stream: Stream): void {
    this.#streams.delete(stream);
    stream.response.destroy();
  }
}

/** Whether changes are in a namespace whose right has not been asked for. */
function hasNewNamespace({ scope, known }: Stream, changes: Changes): boolean {
  return TABLE_NAMES.some(
    (table) =>
      scope.tables.get(table) !== null &&
      (changes[table] as readonly Keyed<unknown>[]).some(
        ({ namespace }) => namespace !== null && known.get(table)?.has(namespace) !== true,
      ),
  );
}

/** All rows that a scope may see, as JSON: a list for each table. */
export function rowsText(model: ClusterModel, scope: Scope): string {
  const seen = visible(scope, model.all());
  const lists = TABLE_NAMES.map((table) => [table, (seen[table] as readonly Keyed<unknown>[]).map(({ row }) => row)]);
  return JSON.stringify({ tables: [...scope.tables.keys()], rows: Object.fromEntries(lists) as object });
}

/** Changed rows, and the keys of those that are gone; empty if the reader sees none of them. */
function changesText(scope: Scope, changes: Changes): string {
  const seen = visible(scope, changes);
  const parts = TABLE_NAMES.flatMap((table) => {
    const rows = seen[table] as readonly Keyed<unknown>[];
    if (rows.length === 0) return [];
    const set = rows.flatMap(({ row }) => row ?? []);
    const gone = rows.filter(({ row }) => row === null).map(({ key }) => key);
    return [[table, { set, gone }]];
  });
  return parts.length === 0 ? '' : message('changes', JSON.stringify(Object.fromEntries(parts)));
}

/** One message of the stream; JSON texts contain no line ends. */
function message(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}
