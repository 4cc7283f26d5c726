import type { ServerResponse } from 'node:http';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { HISTORY_PERIOD_MS, type History } from './history.js';
import { momentOf, type Journal, type NodeView, type UseMoment, type UseRecord } from '../node/index.js';
import { liveDocument, type LiveDocument } from './live-document.js';

export interface LiveFeedOptions {
  readonly view: NodeView;
  readonly history: History;
  readonly use: Pick<UseRecord, 'add'>;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
}

/** Interval in which pages get the usage. */
const TICK_MS = 1_000;
/** A reader with this much unread data gets no more until it has read it. */
const MAX_UNREAD_BYTES = 512 * 1024;
/** A reader that has read nothing for this long is disconnected. */
const MAX_SILENT_MS = 30_000;
/** Number of journal events that a new page gets. */
const FIRST_EVENTS = 100;
export const MAX_READERS = 64;

interface Reader {
  readonly response: ServerResponse;
  /** Whether it missed a message and needs the whole state again. */
  stale: boolean;
  stuckSinceMs: number | null;
}

/**
 * Server-sent events for pages of the node: `hello` once (history, events), `state` after a change, `usage` every
 * second, `event` for each new journal entry. One sample per second serves all readers; without readers, samples are
 * taken only for the history and the record of use. The feed never waits for a reader: a slow reader misses messages,
 * a dead reader is disconnected.
 */
export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #readers = new Set<Reader>();
  #told: string | null = null;
  #toldSequence = 0;
  #cancel: () => void = () => undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#readers.size;
  }

  start(): void {
    this.#cancel = this.#options.clock.every(TICK_MS, () => this.#tick());
  }

  stop(): void {
    this.#cancel();
    for (const { response } of this.#readers) response.destroy();
    this.#readers.clear();
  }

  /** Adds a reader; false if there are too many. The response's headers have been written already. */
  join(response: ServerResponse): boolean {
    if (this.#readers.size >= MAX_READERS) return false;
    const { history, journal, view } = this.#options;
    const reader: Reader = { response, stale: false, stuckSinceMs: null };
    this.#readers.add(reader);
    response.on('close', () => this.#readers.delete(reader));
    response.on('error', () => this.#readers.delete(reader));
    const document = liveDocument(view.snapshot());
    response.write(
      message(
        'hello',
        JSON.stringify({ periodMs: HISTORY_PERIOD_MS, gpus: history.gpus(), events: journal.after(0, FIRST_EVENTS) }),
      ) +
        message('state', document.state) +
        message('usage', document.usage),
    );
    return true;
  }

  #tick(): void {
    try {
      this.#look();
    } catch (error) {
      this.#options.log.error({ err: error }, 'the display snapshot of the node failed');
    }
  }

  #look(): void {
    const { view, history, use, journal, clock } = this.#options;
    const keep = (moment: UseMoment): void => {
      history.add(moment);
      use.add(moment);
    };
    const isDue = history.isDue(clock.now());
    if (this.#readers.size === 0) {
      if (isDue) keep(view.use());
      this.#toldSequence = journal.sequence;
      this.#told = null;
      return;
    }
    const snapshot = view.snapshot();
    if (isDue) keep(momentOf(snapshot));
    const events = journal.after(this.#toldSequence, FIRST_EVENTS);
    this.#toldSequence = journal.sequence;
    const document = liveDocument(snapshot);
    const changed = document.state !== this.#told;
    this.#told = document.state;
    const news = events.map((event) => message('event', JSON.stringify(event))).join('');
    for (const reader of [...this.#readers]) this.#tell(reader, document, changed, news);
  }

  #tell(reader: Reader, document: LiveDocument, changed: boolean, news: string): void {
    const { response } = reader;
    const now = this.#options.clock.now();
    if (response.writableLength > MAX_UNREAD_BYTES) {
      reader.stale = true;
      reader.stuckSinceMs ??= now;
      if (now - reader.stuckSinceMs >= MAX_SILENT_MS) {
        this.#readers.delete(reader);
        response.destroy();
      }
      return;
    }
    reader.stuckSinceMs = null;
    const state = changed || reader.stale ? message('state', document.state) : '';
    reader.stale = false;
    response.write(state + message('usage', document.usage) + news);
  }
}

/** One message of the stream; JSON texts contain no line ends. */
function message(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}
