import type { PodRecord, ReservationRecord, ShapeRecord, StoredRecord, WorkloadRecord } from '../../core/record.js';

type ShapeRef = ShapeRecord | number;

/** The same record with other shapes, or other names of them. */
function withShapes(record: StoredRecord, change: (shape: ShapeRef) => ShapeRef): StoredRecord {
  if (record.kind === 'workload' && record.value !== null) return { ...record, value: workload(record.value, change) };
  if (record.kind === 'pod' && record.value !== null) return { ...record, value: pod(record.value, change) };
  if (record.kind === 'reservation' && record.value !== null) return { ...record, value: reservation(record.value, change) };
  return record;
}

function workload(record: WorkloadRecord, change: (shape: ShapeRef) => ShapeRef): WorkloadRecord {
  return { ...record, podSets: record.podSets.map(([name, count, shape, amounts]) => [name, count, change(shape), amounts] as const) };
}

function pod(record: PodRecord, change: (shape: ShapeRef) => ShapeRef): PodRecord {
  return { ...record, spans: record.spans.map(([at, group, life, shape, amounts]) => [at, group, life, change(shape), amounts] as const) };
}

function reservation(record: ReservationRecord, change: (shape: ShapeRef) => ShapeRef): ReservationRecord {
  return { ...record, candidates: record.candidates.map((candidate) => ({ ...candidate, workload: workload(candidate.workload, change) })) };
}

/** Records in which a shape stands in full once and after that by its number, in order of appearance: pods of a group are much alike. */
export function shareShapes(records: Iterable<StoredRecord>): readonly StoredRecord[] {
  const numbers = new Map<string, number>();
  const share = (shape: ShapeRef): ShapeRef => {
    if (typeof shape === 'number') return shape;
    const number = numbers.get(shape.signature);
    if (number !== undefined) return number;
    numbers.set(shape.signature, numbers.size);
    return shape;
  };
  return [...records].map((record) => withShapes(record, share));
}

/** The records again with every shape in full; equal ones are one object. */
export function unshareShapes(records: readonly StoredRecord[]): readonly StoredRecord[] {
  const shapes: ShapeRecord[] = [];
  const find = (shape: ShapeRef): ShapeRef => {
    if (typeof shape !== 'number') {
      shapes.push(shape);
      return shape;
    }
    const known = shapes[shape];
    if (known === undefined) throw new Error(`a record names shape ${shape} of ${shapes.length}`);
    return known;
  };
  return records.map((record) => withShapes(record, find));
}
