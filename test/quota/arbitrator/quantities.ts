import type { Quantities, RunningPod } from '../../../src/quota/arbitrator/index.js';

/** Whole things of the tables, as thousandths: halves are whole numbers too. */
export function things(amounts: Readonly<Record<string, number>>): Quantities {
  return new Map(Object.entries(amounts).map(([resource, amount]) => [resource, amount * 1000]));
}

/** The other way round, without what is zero. */
export function inThings(amounts: Quantities | undefined): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...(amounts ?? [])].filter(([, amount]) => amount !== 0).map(([resource, amount]) => [resource, amount / 1000]),
  );
}

/** A pod of `consumer` that is called like it and its number; higher numbers started later. */
export function pod(
  consumer: string,
  number: number,
  uses: Readonly<Record<string, number>>,
  more: Partial<RunningPod> = {},
): RunningPod {
  return { id: `${consumer}${number}`, consumer, uses: things(uses), priority: 0, startedAt: number, ...more };
}
