const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Milliseconds of a length of time, which is a number of them or text such as `90s` or `1h30m`; NaN if it is none. */
export function readDuration(duration: unknown): number {
  if (typeof duration === 'number') return Number.isSafeInteger(duration) && duration >= 0 ? duration : NaN;
  if (typeof duration !== 'string' || !/^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d|w)){1,6}$/.test(duration)) return NaN;
  let sum = 0;
  for (const [, count, unit = ''] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g))
    sum += Math.round(Number(count) * (UNITS[unit] ?? NaN));
  return sum;
}
