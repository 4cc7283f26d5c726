/** From `start` to `end`, milliseconds; `end` is Infinity while it continues. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** The union of intervals, as ascending intervals that do not touch. */
export function union(intervals: Iterable<Interval>): readonly Interval[] {
  const merged: Interval[] = [];
  for (const next of [...intervals].sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last === undefined || next.start > last.end) merged.push(next);
    else if (next.end > last.end) merged[merged.length - 1] = { start: last.start, end: next.end };
  }
  return merged;
}

/** The times of one union that another union does not cover. */
export function without(intervals: readonly Interval[], covered: readonly Interval[]): readonly Interval[] {
  return intervals.flatMap(({ start, end }) => {
    const left: Interval[] = [];
    let at = start;
    for (const other of covered) {
      if (other.end <= at) continue;
      if (other.start >= end) break;
      if (other.start > at) left.push({ start: at, end: other.start });
      at = other.end;
    }
    return at < end ? [...left, { start: at, end }] : left;
  });
}
