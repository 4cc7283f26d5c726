import type { ShapeRecord, StoredRecord } from '../../quota/index.js';
import { readPiece, writePiece } from './record-text.js';

/** New records by their `recordKey`; null for a deleted record. */
export type Edits = ReadonlyMap<string, StoredRecord>;

/** A workload's key is its record's key, so that ledger and engine share the text; no workload's key has a space. */
export function recordKey({ kind, key }: Pick<StoredRecord, 'kind' | 'key'>): string {
  return kind === 'workload' ? key : `${kind} ${key}`;
}

/** The first piece of a text, which the texts of later tails share. */
interface FirstPiece {
  readonly text: string;
  readonly records: Edits;
  /** Later pieces name these shapes by number. */
  readonly shapes: readonly ShapeRecord[];
}

const END = '.';
/** With more changes all records are written as one piece again, which takes about ten times as long as eight. */
const MOST_CHANGES = 8;

/**
 * An immutable set of recent records, and its text: a piece that an earlier tail was written as, and a second one with
 * the changes since. So a write costs what changed, and a reader that knows the first piece parses only the second.
 */
export class Tail {
  static readonly EMPTY = new Tail(new Map());
  /** The records by `recordKey`, with values of null for deleted ones that segments have. */
  readonly records: Edits;
  #first: FirstPiece | null;
  readonly #changes: Edits;
  #text: string | null = null;

  /** Without a first piece, all records are written as one. */
  constructor(records: Edits, first: FirstPiece | null = null, changes: Edits = new Map()) {
    this.records = records;
    this.#first = first;
    this.#changes = changes;
  }

  /** Reads a text, without parsing what `known` has. Throws if it is not valid. */
  static read(text: string, known: Tail, isInSegment: (key: string) => boolean): Tail {
    // Some API servers store an empty text as null, and earlier versions wrote any number of pieces.
    const [one = Tail.EMPTY.text, ...others] = text === '' ? [] : text.split(END);
    const first = known.#first?.text === one ? known.#first : readFirst(one);
    const shapes = [...first.shapes];
    const changes = byKey(others.flatMap((piece) => readPiece(piece, shapes)));
    const records = changed(changed(new Map(), first.records, isInSegment), changes, isInSegment);
    return others.length > 1 ? new Tail(records) : new Tail(records, first, changes);
  }

  /** A deleted record is kept only while a segment has it. */
  with(edits: Edits, isInSegment: (key: string) => boolean): Tail {
    const records = changed(this.records, edits, isInSegment);
    const changes = changed(this.#changes, edits);
    const isOnePiece = changes.size > MOST_CHANGES || records.size <= MOST_CHANGES;
    return isOnePiece ? new Tail(records) : new Tail(records, this.#piece(), changes);
  }

  get text(): string {
    if (this.#text !== null) return this.#text;
    const { text, shapes } = this.#piece();
    this.#text = this.#changes.size === 0 ? text : `${text}${END}${writePiece(this.#changes.values(), [...shapes])}`;
    return this.#text;
  }

  #piece(): FirstPiece {
    const shapes: ShapeRecord[] = [];
    this.#first ??= { text: writePiece(this.records.values(), shapes), records: this.records, shapes };
    return this.#first;
  }
}

function readFirst(text: string): FirstPiece {
  const shapes: ShapeRecord[] = [];
  return { text, records: byKey(readPiece(text, shapes)), shapes };
}

export function byKey(records: Iterable<StoredRecord>): Map<string, StoredRecord> {
  return new Map([...records].map((record) => [recordKey(record), record]));
}

/** Changed records are the last ones. */
function changed(before: Edits, edits: Edits, keepsDeleted: (key: string) => boolean = () => true): Edits {
  const after = new Map(before);
  for (const [key, record] of edits) {
    after.delete(key);
    if (record.value !== null || keepsDeleted(key)) after.set(key, record);
  }
  return after;
}
