/** A moment: milliseconds since 1970, or text in ISO 8601: `2026-03-02T08:00:00Z`. */
export type Moment = number | string;

/** A length of time: milliseconds, or text: `90s`, `12h`, `7d`, `1h30m`. */
export type Duration = number | string;

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Milliseconds since 1970; NaN for an invalid value. */
export function readMoment(moment: unknown): number {
  if (typeof moment === 'number') return Number.isSafeInteger(moment) ? moment : NaN;
  // Date.parse accepts many texts that are not ISO 8601.
  return typeof moment === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)$/.test(moment)
    ? Date.parse(moment)
    : NaN;
}

/** Milliseconds; NaN for an invalid value. */
export function readDuration(duration: unknown): number {
  if (typeof duration === 'number') return Number.isSafeInteger(duration) && duration >= 0 ? duration : NaN;
  if (typeof duration !== 'string' || !/^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d|w)){1,6}$/.test(duration)) return NaN;
  let sum = 0;
  for (const [, count, unit = ''] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g))
    sum += Math.round(Number(count) * (UNITS[unit] ?? NaN));
  return sum;
}
