/** Time after which something is repeated: milliseconds, or a calendar month in UTC. 0: it is not repeated. */
export type Period = number | 'month';

/** The last day of a month on which a monthly period may begin: every month has it. */
export const LAST_MONTHLY_DAY = 28;

/** The beginning of the `steps`th period after the one that began at `at`. */
export function periodAfter(at: number, period: Period, steps: number): number {
  if (period !== 'month') return at + steps * period;
  const date = new Date(at);
  return date.setUTCMonth(date.getUTCMonth() + steps);
}

/** How many whole periods lie between two moments; 0 if `until` is earlier. */
export function periodsBetween(from: number, until: number, period: Period): number {
  if (period === 0 || until < from) return 0;
  if (period !== 'month') return Math.floor((until - from) / period);
  const [first, last] = [new Date(from), new Date(until)];
  const months = (last.getUTCFullYear() - first.getUTCFullYear()) * 12 + last.getUTCMonth() - first.getUTCMonth();
  return periodAfter(from, period, months) > until ? months - 1 : months;
}

/** The first moment of the calendar month of `at`, in UTC. */
export function monthOf(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** Whether a monthly period may begin at `at`. */
export function isMonthlyDay(at: number): boolean {
  return new Date(at).getUTCDate() <= LAST_MONTHLY_DAY;
}
