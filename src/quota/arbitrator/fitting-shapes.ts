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
  return shapes.map((shape) => {
    const [where, blockedBy] = [new Map<string, number>(), new Map<string, number>()];
    for (const place of places) {
      const { copies, lacks } = fitIn(place, shape);
      if (copies > 0) where.set(place.name, copies);
      for (const key of lacks) blockedBy.set(key, of(blockedBy, key) + 1);
    }
    return { shape, fits: [...where.values()].reduce((sum, copies) => sum + copies, 0), where, blockedBy };
  });
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
