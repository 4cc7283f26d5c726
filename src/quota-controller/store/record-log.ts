import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type {
  PodRecord,
  ReservationRecord,
  ShapeRecord,
  StoredRecord,
  WorkloadRecord,
} from '../../quota/core/record.js';

/** New values of records by their `recordKey`; null where one is gone. */
export type Edits = ReadonlyMap<string, StoredRecord>;

type ShapeRef = ShapeRecord | number;

/** So many records may be written again in full for each one that changes. */
const REWRITE_FACTOR = 4;
const LEAST_EDITS = 64;
/** Shorter pieces are not worth compressing. */
const LEAST_COMPRESSED = 2048;
const END = '.';
const PLAIN = '-';
/** No empty text: some API servers store an empty text of a custom resource as null, and refuse it. */
const NO_RECORDS = `${PLAIN}${Buffer.from('[]').toString('base64')}`;

/** The key of a record within a log. */
export function recordKey({ kind, key }: Pick<StoredRecord, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

/**
 * Records with the text they are written as: a piece with all of them, and a piece more for each time that some of them
 * changed, until everything is written anew. What a change costs to write does not grow with the number of records.
 * Never changed: replaced.
 *
 * Pieces are separated by `.`; each is a JSON array of records, later ones in place of earlier ones, in base64: short
 * ones as they are with `-` before, others after raw deflate. A shape stands in full where it comes up first, and after
 * that by its number in order of appearance.
 */
export class RecordLog {
  /** What is written in the place of this. */
  readonly text: string;
  readonly #base: ReadonlyMap<string, StoredRecord>;
  /** What changed since `base`, values of null among it. */
  readonly #late: ReadonlyMap<string, StoredRecord>;
  readonly #shapes: readonly ShapeRecord[];
  readonly #numbers: ReadonlyMap<string, number>;
  /** Records that were written since `base`. */
  readonly #edits: number;

  private constructor(
    text: string,
    base: ReadonlyMap<string, StoredRecord>,
    late: ReadonlyMap<string, StoredRecord>,
    shapes: readonly ShapeRecord[],
    edits: number,
  ) {
    this.text = text;
    this.#base = base;
    this.#late = late;
    this.#shapes = shapes;
    this.#numbers = new Map(shapes.map(({ signature }, number) => [signature, number]));
    this.#edits = edits;
  }

  static empty(): RecordLog {
    return new RecordLog(NO_RECORDS, new Map(), new Map(), [], 0);
  }

  /**
   * Throws on what no log was written as. With `known`, an earlier state of the same records, only what is new is read.
   */
  static read(
    text: string,
    known: RecordLog | null = null,
  ): {
    readonly log: RecordLog;
    /** What is different from `known`; null where that cannot be told. */ readonly news: Edits | null;
  } {
    if (known !== null && known.text !== '' && (text === known.text || text.startsWith(`${known.text}${END}`))) {
      const news = new Map<string, StoredRecord>();
      const log = text === known.text ? known : known.#append(text, text.slice(known.text.length + 1).split(END), news);
      return { log, news };
    }
    const [first = NO_RECORDS, ...others] = (text === '' ? NO_RECORDS : text).split(END);
    const shapes: ShapeRecord[] = [];
    const base = new Map(readPiece(first, shapes).map((record) => [recordKey(record), record]));
    return { log: new RecordLog(first, base, new Map(), shapes, 0).#append(text, others, new Map()), news: null };
  }

  has(key: string): boolean {
    const late = this.#late.get(key);
    return late === undefined ? this.#base.has(key) : late.value !== null;
  }

  *values(): IterableIterator<StoredRecord> {
    for (const [key, record] of this.#base) if (!this.#late.has(key)) yield record;
    for (const record of this.#late.values()) if (record.value !== null) yield record;
  }

  /** The same records but for some. */
  with(edits: Edits): RecordLog {
    if (edits.size === 0) return this;
    const count = this.#edits + edits.size;
    const late = new Map([...this.#late, ...edits]);
    if (this.text === NO_RECORDS || count > Math.max(LEAST_EDITS, this.#base.size / REWRITE_FACTOR))
      return RecordLog.#anew(new RecordLog('', this.#base, late, [], 0));
    const [numbers, shapes] = [new Map(this.#numbers), [...this.#shapes]];
    const piece = writePiece(edits.values(), numbers, shapes);
    return new RecordLog(`${this.text}${END}${piece}`, this.#base, late, shapes, count);
  }

  static #anew(records: RecordLog): RecordLog {
    const base = new Map([...records.values()].map((record) => [recordKey(record), record]));
    const shapes: ShapeRecord[] = [];
    return new RecordLog(writePiece(base.values(), new Map(), shapes), base, new Map(), shapes, 0);
  }

  #append(text: string, pieces: readonly string[], news: Map<string, StoredRecord>): RecordLog {
    if (pieces.length === 0) return this;
    const shapes = [...this.#shapes];
    let count = this.#edits;
    for (const piece of pieces) {
      const records = readPiece(piece, shapes);
      count += records.length;
      for (const record of records) news.set(recordKey(record), record);
    }
    return new RecordLog(text, this.#base, new Map([...this.#late, ...news]), shapes, count);
  }
}

function writePiece(records: Iterable<StoredRecord>, numbers: Map<string, number>, shapes: ShapeRecord[]): string {
  const share = (shape: ShapeRef): ShapeRef => {
    if (typeof shape === 'number') return shape;
    const number = numbers.get(shape.signature);
    if (number !== undefined) return number;
    numbers.set(shape.signature, shapes.length);
    shapes.push(shape);
    return shape;
  };
  const json = Buffer.from(JSON.stringify([...records].map((record) => withShapes(record, share))));
  return json.length < LEAST_COMPRESSED
    ? `${PLAIN}${json.toString('base64')}`
    : deflateRawSync(json, { level: 1 }).toString('base64');
}

/**
 * Reads the records of a piece, with every shape in full; equal ones are one object. `shapes` are those of the pieces
 * before.
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

/** The same record with other shapes, or other names of them. */
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
