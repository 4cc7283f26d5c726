import { of, type Quantities } from '../../manifests/quantities.js';

/** A request as pods or workloads make it. */
export interface Shape {
  readonly name: string;
  readonly uses: Quantities;
  /** How many pods or workloads have this shape. */
  readonly count: number;
}

/** Where a shape may fit: a node, or a group of the quota engine. */
export interface Place {
  readonly name: string;
  readonly free: Quantities;
  /** How many of a shape fit, at most `limit`, where sums are not enough, as on GPUs; the sums allow `limit`. */
  readonly copies?: ((shape: Shape, limit: number) => number) | undefined;
}

/** How often a shape still fits. */
export interface FittingShape {
  readonly shape: Shape;
  /** In all places. */
  readonly fits: number;
  /** Places where it fits at least once. */
  readonly where: ReadonlyMap<string, number>;
  /** What the next one lacks: the number of places by key. `PLACEMENT` where the sums suffice. */
  readonly blockedBy: ReadonlyMap<string, number>;
}

/** The sums of a place suffice, but not in one piece: parts that are free on several GPUs are not a free GPU. */
export const PLACEMENT = 'placement';

/**
 * For each shape how often it still fits where, and what blocks the next one: which capacity is free in pieces that are
 * too small. Each shape is counted alone. O(shapes x places x keys).
 */
export function fittingShapes(places: readonly Place[], shapes: readonly Shape[]): readonly FittingShape[] {
  const counts = new FittingCounts(shapes);
  for (const place of places) counts.add(place);
  return counts.all;
}

/** The same, place by place, for callers that leave the event loop to others between two places. */
export class FittingCounts {
  readonly #counts: readonly (FittingShape & {
    fits: number;
    readonly where: Map<string, number>;
    readonly blockedBy: Map<string, number>;
  })[];

  constructor(shapes: readonly Shape[]) {
    this.#counts = shapes.map((shape) => ({ shape, fits: 0, where: new Map(), blockedBy: new Map() }));
  }

  get all(): readonly FittingShape[] {
    return this.#counts;
  }

  /** O(shapes x keys). */
  add(place: Place): void {
    for (const count of this.#counts) {
      const { copies, lacks } = fitIn(place, count.shape);
      if (copies > 0) count.where.set(place.name, copies);
      count.fits += copies;
      for (const key of lacks) count.blockedBy.set(key, of(count.blockedBy, key) + 1);
    }
  }
}

function fitIn(
  { free, copies: placed }: Place,
  shape: Shape,
): { readonly copies: number; readonly lacks: readonly string[] } {
  const uses = [...shape.uses].filter(([, amount]) => amount > 0);
  const most = Math.min(...uses.map(([key, amount]) => Math.floor(Math.max(0, of(free, key)) / amount)));
  if (most === Infinity) return { copies: 0, lacks: [] };
  const copies = most === 0 || placed === undefined ? most : placed(shape, most);
  const lacks = uses.flatMap(([key, amount]) => (of(free, key) < (copies + 1) * amount ? [key] : []));
  return { copies, lacks: lacks.length > 0 ? lacks : [PLACEMENT] };
}
