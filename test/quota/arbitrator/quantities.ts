import type { Quantities, RunningPod } from '../../../src/quota/arbitrator/index.js';

/** Amounts of the tables in thousandths, so that halves are whole numbers. */
export function things(amounts: Readonly<Record<string, number>>): Quantities {
  return new Map(Object.entries(amounts).map(([resource, amount]) => [resource, amount * 1000]));
}

/** The inverse of `things`, without zeros. */
export function inThings(amounts: Quantities | undefined): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...(amounts ?? [])].filter(([, amount]) => amount !== 0).map(([resource, amount]) => [resource, amount / 1000]),
  );
}

/** A pod of `consumer`, named after it and a number; higher numbers started later. */
export function pod(
  consumer: string,
  number: number,
  uses: Readonly<Record<string, number>>,
  more: Partial<RunningPod> = {},
): RunningPod {
  return { id: `${consumer}${number}`, consumer, uses: things(uses), priority: 0, startedAt: number, ...more };
}
