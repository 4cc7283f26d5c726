import { randomUUID } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { PodRecord, ReservationRecord, ShapeRecord, StoredRecord, WorkloadRecord } from '../../quota/index.js';

type ShapeRef = ShapeRecord | number;

/** Shorter pieces are not compressed. */
const MIN_COMPRESSED_BYTES = 1024;
const PLAIN = '-';

/** A small state and output: the library would clear a quarter of a megabyte for each piece. */
const DEFLATE = { level: 1, memLevel: 6, windowBits: 13, chunkSize: 4096 };

/**
 * Writes records as one piece of text: a JSON array in base64, compressed unless the text begins with `-`. `shapes`
 * holds the shapes of earlier pieces of the same text, and gets those of this one.
 */
export function writePiece(records: Iterable<StoredRecord>, shapes: ShapeRecord[] = []): string {
  const numbers = new Map(shapes.map(({ signature }, number) => [signature, number]));
  const written = (shape: ShapeRecord): string => {
    const number = numbers.get(shape.signature);
    if (number !== undefined) return `${number}`;
    numbers.set(shape.signature, shapes.length);
    shapes.push(shape);
    return JSON.stringify(shape);
  };
  const parts: string[] = [];
  for (const record of records) {
    const { between, shapes: own } = textOf(record);
    let text = between[0] as string;
    own.forEach((shape, index) => (text += written(shape) + (between[index + 1] as string)));
    parts.push(text);
  }
  const json = Buffer.from(`[${parts.join()}]`);
  return json.length < MIN_COMPRESSED_BYTES
    ? `${PLAIN}${json.toString('base64')}`
    : deflateRawSync(json, DEFLATE).toString('base64');
}

/** The JSON of a record between its shapes, which are written once in each piece. */
interface RecordText {
  readonly between: readonly string[];
  readonly shapes: readonly ShapeRecord[];
}

/** Stands for a shape. Nobody can write this text into a record. */
const MARK = `shape ${randomUUID()}`;

/** A record stays in the tail for many writes. */
const texts = new WeakMap<StoredRecord, RecordText>();

function textOf(record: StoredRecord): RecordText {
  const before = texts.get(record);
  if (before !== undefined) return before;
  const shapes: ShapeRecord[] = [];
  const marked = withShapes(record, (shape) => {
    if (typeof shape === 'number') return shape;
    shapes.push(shape);
    return MARK as unknown as ShapeRef;
  });
  const text = { between: JSON.stringify(marked).split(`"${MARK}"`), shapes };
  texts.set(record, text);
  return text;
}

/**
 * Reads the records of a piece and resolves their shapes; equal shapes become one object. `shapes` holds the shapes of
 * earlier pieces of the same text. Throws if the piece is not valid.
 */
export function readPiece(piece: string, shapes: ShapeRecord[] = []): readonly StoredRecord[] {
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
