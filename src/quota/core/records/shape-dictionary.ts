import { amountOfDigits } from '../amounts/digits.js';
import type { ShapeRecord, WorkloadRecord } from './record.js';
import type { PodSetCharge, RequestShape, RequestShapeTable } from '../state/request-shape.js';

/** Lists of pod sets that a dictionary keeps. */
const MAX_KNOWN = 4096;

/**
 * How records reference shapes. Without a dictionary, every record contains its shapes. With one, only the first record
 * of a file that uses a shape contains it; later records contain its index in the order of appearance.
 */
export class ShapeDictionary {
  readonly #numbers = new Map<RequestShape, number>();
  readonly #shapes: RequestShape[] = [];
  /** Lists that were read before: a reader of many records may give the same list again. */
  readonly #known = new Map<WorkloadRecord['podSets'], readonly PodSetCharge[]>();

  write(shape: RequestShape): ShapeRecord | number {
    const number = this.#numbers.get(shape);
    if (number !== undefined) return number;
    this.#numbers.set(shape, this.#numbers.size);
    return shapeRecord(shape);
  }

  read(record: ShapeRecord | number, shapes: RequestShapeTable): RequestShape {
    if (typeof record === 'number') {
      const shape = this.#shapes[record];
      if (shape === undefined) throw new Error(`a record names shape ${record} of ${this.#shapes.length}`);
      return shape;
    }
    const shape =
      shapes.find(record.signature) ?? shapes.add(record.signature, record.needs, record.types, record.unspecified);
    this.#shapes.push(shape);
    return shape;
  }

  /** Parses the pod sets of a workload. */
  podSets(records: WorkloadRecord['podSets'], shapes: RequestShapeTable): readonly PodSetCharge[] {
    const known = this.#known.get(records);
    if (known !== undefined) return known;
    const podSets = records.map(([name, count, written, amounts]): PodSetCharge => {
      const shape = this.read(written, shapes);
      return { name, count, shape, amounts: shape.share(amounts.map(amountOfDigits)) };
    });
    const [only] = podSets;
    const shared = podSets.length === 1 && only !== undefined ? only.shape.shareSet(only) : podSets;
    // A record with a shape adds it to this dictionary each time.
    if (records.every(([, , written]) => typeof written === 'number')) {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(records, shared);
    }
    return shared;
  }
}

/** The record of a shape without a dictionary. */
export function shapeRecord({ signature, needs, types, unspecified }: RequestShape): ShapeRecord {
  return { signature, needs, types, unspecified };
}
