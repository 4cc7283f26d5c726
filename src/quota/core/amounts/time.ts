export { readDuration } from '../../../manifests/duration.js';

/** A moment: milliseconds since 1970, or text in ISO 8601: `2026-03-02T08:00:00Z`. */
export type Moment = number | string;

/** A length of time: milliseconds, or text: `90s`, `12h`, `7d`, `1h30m`. */
export type Duration = number | string;

/** Milliseconds since 1970; NaN for an invalid value. */
export function readMoment(moment: unknown): number {
  if (typeof moment === 'number') return Number.isSafeInteger(moment) ? moment : NaN;
  // Date.parse accepts many texts that are not ISO 8601.
  return typeof moment === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)$/.test(moment)
    ? Date.parse(moment)
    : NaN;
}
