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
  /** Number of the entry that this one replaces: the same event before its repetition, or before its pod was known. */
  readonly replaces?: number;
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
    const before = this.#take((entry) => isSame(entry, note));
    this.#add(note, before, (before?.count ?? 0) + 1);
  }

  /** Notes an event instead of a recent one that lacked the pod; `anonymous` is the message of that one. */
  noteOwner(note: JournalNote, anonymous: string): void {
    const { owner: _owner, ...lacking } = note;
    const before =
      this.#take((entry) => entry.owner === undefined && isSame(entry, { ...lacking, message: anonymous })) ??
      this.#take((entry) => isSame(entry, note));
    this.#add(note, before, before?.owner === undefined ? 1 : before.count + 1);
  }

  #add(note: JournalNote, before: JournalEntry | undefined, count: number): void {
    this.#sequence += 1;
    const replaces = before === undefined ? {} : { replaces: before.sequence };
    this.#entries.push({ ...note, sequence: this.#sequence, atMs: this.#clock.now(), count, ...replaces });
    if (this.#entries.length > this.#limit) this.#entries = this.#entries.slice(-this.#limit);
  }

  /** Removes a recent entry. */
  #take(matches: (entry: JournalEntry) => boolean): JournalEntry | undefined {
    const from = Math.max(0, this.#entries.length - REPEATS_AMONG);
    const at = this.#entries.findIndex((entry, place) => place >= from && matches(entry));
    return at < 0 ? undefined : this.#entries.splice(at, 1)[0];
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
