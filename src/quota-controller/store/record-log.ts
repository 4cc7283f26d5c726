import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import type { PodRecord, ReservationRecord, ShapeRecord, StoredRecord, WorkloadRecord } from '../../quota/index.js';

/** New records by their `recordKey`; null for a deleted record. */
export type Edits = ReadonlyMap<string, StoredRecord>;

type ShapeRef = ShapeRecord | number;

/** At the latest, a log is rewritten when its changes exceed 1 / REWRITE_FACTOR of the records at the last rewrite. */
const REWRITE_FACTOR = 4;
const MIN_EDITS = 64;
/** Shorter pieces are not compressed. */
const MIN_COMPRESSED_BYTES = 2048;
const END = '.';
const PLAIN = '-';
/** Not empty: some API servers store an empty text in a custom resource as null, and then reject it. */
const NO_RECORDS = `${PLAIN}${Buffer.from('[]').toString('base64')}`;

/** The records at the last rewrite. */
interface Base {
  readonly records: ReadonlyMap<string, StoredRecord>;
  /** Number of changes after which the log is rewritten. */
  readonly maxEdits: number;
}

export function recordKey({ kind, key }: Pick<StoredRecord, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

/**
 * An immutable set of records with its serialised text: one piece with all records, and another piece for each later
 * change, until a rewrite. The cost of writing a change does not depend on the number of records.
 *
 * Pieces are separated by `.`. Each piece is a JSON array of records in base64, and later records replace earlier ones.
 * A short piece is plain and begins with `-`; the others are compressed with raw deflate. A shape is written in full at
 * its first use, and later as its index.
 */
export class RecordLog {
  /** The serialised text. */
  readonly text: string;
  readonly #base: Base;
  /** Records changed since `base`, with values of null for deleted ones. */
  readonly #changed: ReadonlyMap<string, StoredRecord>;
  readonly #shapes: readonly ShapeRecord[];
  readonly #shapeIndexes: ReadonlyMap<string, number>;
  /** Number of records written since `base`. */
  readonly #edits: number;

  private constructor(
    text: string,
    base: Base,
    changed: ReadonlyMap<string, StoredRecord>,
    shapes: readonly ShapeRecord[],
    edits: number,
  ) {
    this.text = text;
    this.#base = base;
    this.#changed = changed;
    this.#shapes = shapes;
    this.#shapeIndexes = new Map(shapes.map(({ signature }, number) => [signature, number]));
    this.#edits = edits;
  }

  static empty(): RecordLog {
    return new RecordLog(NO_RECORDS, baseOf(NO_RECORDS, []), new Map(), [], 0);
  }

  /**
   * Reads a text; throws if no log was written like that. With `known`, an earlier state of the same log, only new
   * pieces are parsed.
   */
  static read(
    text: string,
    known: RecordLog | null = null,
  ): {
    readonly log: RecordLog;
    /** Changes since `known`; null if the comparison is not possible. */ readonly changes: Edits | null;
  } {
    if (known !== null && known.text !== '' && (text === known.text || text.startsWith(`${known.text}${END}`))) {
      const changes = new Map<string, StoredRecord>();
      const log =
        text === known.text ? known : known.#append(text, text.slice(known.text.length + 1).split(END), changes);
      return { log, changes };
    }
    const [first = NO_RECORDS, ...others] = (text === '' ? NO_RECORDS : text).split(END);
    const shapes: ShapeRecord[] = [];
    const base = baseOf(first, readPiece(first, shapes));
    return { log: new RecordLog(first, base, new Map(), shapes, 0).#append(text, others, new Map()), changes: null };
  }

  has(key: string): boolean {
    const changed = this.#changed.get(key);
    return changed === undefined ? this.#base.records.has(key) : changed.value !== null;
  }

  *values(): IterableIterator<StoredRecord> {
    for (const [key, record] of this.#base.records) if (!this.#changed.has(key)) yield record;
    for (const record of this.#changed.values()) if (record.value !== null) yield record;
  }

  /** Returns a log with changed records. */
  with(edits: Edits): RecordLog {
    if (edits.size === 0) return this;
    const count = this.#edits + edits.size;
    const changed = merged(this.#changed, edits);
    if (this.text === NO_RECORDS || count > this.#base.maxEdits)
      return RecordLog.#rewritten(new RecordLog('', this.#base, changed, [], 0));
    const [indexes, shapes] = [new Map(this.#shapeIndexes), [...this.#shapes]];
    const piece = writePiece(edits.values(), indexes, shapes);
    return new RecordLog(`${this.text}${END}${piece}`, this.#base, changed, shapes, count);
  }

  static #rewritten(records: RecordLog): RecordLog {
    const all = [...records.values()];
    const shapes: ShapeRecord[] = [];
    const text = writePiece(all, new Map(), shapes);
    return new RecordLog(text, baseOf(text, all), new Map(), shapes, 0);
  }

  #append(text: string, pieces: readonly string[], changes: Map<string, StoredRecord>): RecordLog {
    if (pieces.length === 0) return this;
    const shapes = [...this.#shapes];
    let count = this.#edits;
    for (const piece of pieces) {
      const records = readPiece(piece, shapes);
      count += records.length;
      for (const record of records) changes.set(recordKey(record), record);
    }
    return new RecordLog(text, this.#base, merged(this.#changed, changes), shapes, count);
  }
}

/**
 * The piece with all records. The number of changes before the next rewrite is between half and all of the maximum. It
 * follows from the text, so that groups that change at the same pace are rewritten at different times, and every
 * process rewrites a log at the same change.
 */
function baseOf(text: string, records: readonly StoredRecord[]): Base {
  const most = Math.max(MIN_EDITS, records.length / REWRITE_FACTOR);
  const share = 0.5 + crc32(text) / 2 ** 33;
  return { records: new Map(records.map((record) => [recordKey(record), record])), maxEdits: most * share };
}

/** Without an array of all entries: this runs with every commit. */
function merged(known: Edits, edits: Edits): Edits {
  const all = new Map(known);
  for (const [key, record] of edits) all.set(key, record);
  return all;
}

function writePiece(records: Iterable<StoredRecord>, indexes: Map<string, number>, shapes: ShapeRecord[]): string {
  const share = (shape: ShapeRef): ShapeRef => {
    if (typeof shape === 'number') return shape;
    const number = indexes.get(shape.signature);
    if (number !== undefined) return number;
    indexes.set(shape.signature, shapes.length);
    shapes.push(shape);
    return shape;
  };
  const json = Buffer.from(JSON.stringify([...records].map((record) => withShapes(record, share))));
  return json.length < MIN_COMPRESSED_BYTES
    ? `${PLAIN}${json.toString('base64')}`
    : deflateRawSync(json, { level: 1 }).toString('base64');
}

/**
 * Reads the records of a piece and resolves their shapes; equal shapes become one object. `shapes` holds the shapes of
 * earlier pieces.
 */
function readPiece(piece: string, shapes: ShapeRecord[]): readonly StoredRecord[] {
  const json = piece.startsWith(PLAIN)
    ? Buffer.from(piece.slice(PLAIN.length), 'base64')
    : inflateRawSync(Buffer.from(piece, 'base64'));
  const find = (shape: ShapeRef): ShapeRef => {
    if (typeof shape !== 'number') {
      shapes.push(shape);
      return shape;
    }
    const known = shapes[shape];
    if (known === undefined) throw new Error(`a record names shape ${shape} of ${shapes.length}`);
    return known;
  };
  return (JSON.parse(json.toString('utf8')) as readonly StoredRecord[]).map((record) => withShapes(record, find));
}

/** Returns the record with each shape reference replaced. */
function withShapes(record: StoredRecord, change: (shape: ShapeRef) => ShapeRef): StoredRecord {
  if (record.kind === 'workload' && record.value !== null) return { ...record, value: workload(record.value, change) };
  if (record.kind === 'pod' && record.value !== null) return { ...record, value: pod(record.value, change) };
  if (record.kind === 'reservation' && record.value !== null)
    return { ...record, value: reservation(record.value, change) };
  return record;
}

function workload(record: WorkloadRecord, change: (shape: ShapeRef) => ShapeRef): WorkloadRecord {
  return {
    ...record,
    podSets: record.podSets.map(([name, count, shape, amounts]) => [name, count, change(shape), amounts] as const),
  };
}

function pod(record: PodRecord, change: (shape: ShapeRef) => ShapeRef): PodRecord {
  return {
    ...record,
    spans: record.spans.map(([at, group, life, shape, amounts]) => [at, group, life, change(shape), amounts] as const),
  };
}

function reservation(record: ReservationRecord, change: (shape: ShapeRef) => ShapeRef): ReservationRecord {
  return {
    ...record,
    candidates: record.candidates.map((candidate) => ({
      ...candidate,
      workload: workload(candidate.workload, change),
    })),
  };
}
