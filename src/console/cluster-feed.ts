import { setImmediate as nextTurn } from 'node:timers/promises';
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
/** Rows that are made text in one turn of the event loop. */
const ROWS_A_TURN = 200;
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
  /** Changes since the snapshot of rows that is being rendered for it, which follow the rows; null otherwise. */
  following: string | null;
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
  readonly #rowsOf = new Map<string, Promise<Buffer>>();
  #cancel: () => void = () => undefined;
  #isTelling = false;

  constructor(options: ClusterFeedOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#streams.size;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(TICK_MS, () => void this.#tick());
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
      ...{ stale: false, following: null, stuckSinceMs: null, asking: false, askedAtMs: now },
    };
    this.#streams.add(stream);
    response.on('close', () => this.#streams.delete(stream));
    response.on('error', () => this.#streams.delete(stream));
    response.write(this.#state());
    void this.#writeRows(stream);
    return true;
  }

  /** All rows of a scope as JSON, as they are now; rendered in turns, and once between two ticks. */
  async rows(scope: Scope): Promise<Buffer> {
    await this.#settled();
    return this.#rendered(scope);
  }

  /** Computes what is stale in turns. */
  async #settled(): Promise<void> {
    while (!this.#options.model.refresh(ROWS_A_TURN)) await nextTurn();
  }

  #rendered(scope: Scope): Promise<Buffer> {
    const key = scopeKey(scope);
    const kept = this.#rowsOf.get(key);
    if (kept !== undefined) return kept;
    const rows = renderedRows(this.#options.model, scope);
    if (this.#rowsOf.size >= MAX_SCOPES) this.#rowsOf.clear();
    this.#rowsOf.set(key, rows);
    return rows;
  }

  #state(): string {
    return message('console', JSON.stringify(this.#options.state()));
  }

  async #writeRows(stream: Stream): Promise<void> {
    const { response, scope } = stream;
    stream.following = '';
    await this.#settled();
    // The rows have what was told meanwhile.
    stream.following = '';
    const rows = await this.#rendered(scope);
    response.write('event: rows\ndata: ');
    response.write(rows);
    response.write(`\n\n${stream.following}`);
    stream.following = null;
  }

  /** Tells all readers what changed, a part of the rows in each turn. */
  async #tick(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    const slow = new Set([...this.#streams].filter(({ response }) => response.writableLength > MAX_UNREAD_BYTES));
    try {
      do {
        const changes = this.#options.model.takeChanges(ROWS_A_TURN);
        if (changes !== null) this.#rowsOf.clear();
        const state = this.#state();
        for (const stream of [...this.#streams]) this.#tell(stream, changes, state, slow.has(stream));
        await nextTurn();
      } while (this.#options.model.hasChanges);
    } catch (error) {
      this.#options.log.error({ err: error }, 'sending the changes of the cluster failed');
    } finally {
      this.#isTelling = false;
    }
  }

  #tell(stream: Stream, changes: Changes | null, state: string, isSlow: boolean): void {
    const { response, scope } = stream;
    const now = this.#options.clock.now();
    if (isSlow) {
      stream.stale ||= changes !== null;
      stream.stuckSinceMs ??= now;
      if (now - stream.stuckSinceMs >= MAX_SILENT_MS) this.#drop(stream);
      return;
    }
    stream.stuckSinceMs = null;
    const changed = stream.stale || changes === null ? '' : changesText(scope, changes);
    if (stream.following !== null) stream.following += changed;
    else {
      response.write(changed + state);
      if (stream.stale) void this.#writeRows(stream);
      stream.stale = false;
    }
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

/** All rows that a scope may see now, as JSON: a list for each table. They are made text in turns. */
async function renderedRows(model: ClusterModel, scope: Scope): Promise<Buffer> {
  const seen = visible(scope, model.all());
  const parts = [Buffer.from(`{"tables":${JSON.stringify([...scope.tables.keys()])},"rows":{`)];
  for (const [at, table] of TABLE_NAMES.entries()) {
    parts.push(Buffer.from(`${at === 0 ? '' : ','}"${table}":[`));
    const rows = seen[table] as readonly Keyed<unknown>[];
    for (let from = 0; from < rows.length; from += ROWS_A_TURN) {
      const some = rows.slice(from, from + ROWS_A_TURN).map(({ row }) => row);
      parts.push(Buffer.from(`${from === 0 ? '' : ','}${JSON.stringify(some).slice(1, -1)}`));
      await nextTurn();
    }
    parts.push(Buffer.from(']'));
  }
  return Buffer.concat([...parts, Buffer.from('}}')]);
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
