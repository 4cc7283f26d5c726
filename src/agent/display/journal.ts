import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import type { Clock } from '../../host/clock.js';

/** An event on the node, for operators. */
export interface JournalNote {
  readonly level: 'info' | 'warning';
  /** One word in CamelCase, which programs filter by. */
  readonly kind: string;
  /** The event as a sentence. It may contain text that tenants chose. */
  readonly message: string;
  readonly gpuUuid?: string;
  readonly allocation?: string;
  readonly owner?: ContainerRef;
}

export interface JournalEntry extends JournalNote {
  /** Grows with every event; a repeated event gets a new number, and its count grows. */
  readonly sequence: number;
  readonly atMs: number;
  readonly count: number;
}

/** An event that equals one of this many latest events only increases that event's count. */
const REPEATS_AMONG = 32;

/**
 * The latest events of this node, for the page and the command line, in memory only. Logs and pod events are the
 * lasting records.
 */
export class Journal {
  readonly #clock: Clock;
  readonly #limit: number;
  #entries: JournalEntry[] = [];
  #sequence = 0;

  constructor(clock: Clock, limit = 500) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Number of the latest entry; 0 before the first. */
  get sequence(): number {
    return this.#sequence;
  }

  note(note: JournalNote): void {
    const from = Math.max(0, this.#entries.length - REPEATS_AMONG);
    const again = this.#entries.findIndex((entry, at) => at >= from && isSame(entry, note));
    const [before] = again < 0 ? [] : this.#entries.splice(again, 1);
    this.#sequence += 1;
    this.#entries.push({ ...note, sequence: this.#sequence, atMs: this.#clock.now(), count: (before?.count ?? 0) + 1 });
    if (this.#entries.length > this.#limit) this.#entries = this.#entries.slice(-this.#limit);
  }

  /** The latest `most` entries after a sequence number, oldest first. */
  after(sequence: number, most = this.#limit): readonly JournalEntry[] {
    return this.#entries.filter((entry) => entry.sequence > sequence).slice(-most);
  }
}

function isSame(entry: JournalEntry, note: JournalNote): boolean {
  return (
    entry.kind === note.kind &&
    entry.message === note.message &&
    entry.allocation === note.allocation &&
    entry.gpuUuid === note.gpuUuid
  );
}
