/**
 * The sums of a container's counters. The counters are in a file that the container can write, and each start of the
 * container begins a new file, so the agent adds up increases: its sums never fall. Pure.
 */
import { DENIED_APIS, type DeniedApi, type PaceUsage } from '../../../abi/usage-file.js';

const COUNTERS = [
  'launches',
  'chargedNs',
  'throttledNs',
  'waits',
  'samples',
  'sampledNs',
  'unknownLaunches',
  'deniedBytes',
  'reclaimedBytes',
] as const;

/** The counters of a GPU that only grow. They saturate at 2^53 - 1. */
export type UsageCounters = Readonly<Record<(typeof COUNTERS)[number], number>> & {
  readonly denied: Readonly<Record<DeniedApi, number>>;
};

export const NO_COUNTERS: UsageCounters = tabulate(
  () => 0,
  () => 0,
);

/** The higher of both, counter by counter. */
export function highest(a: UsageCounters, b: UsageCounters): UsageCounters {
  return tabulate(
    (name) => Math.max(a[name], b[name]),
    (api) => Math.max(a.denied[api], b.denied[api]),
  );
}

/**
 * The sums after another read: `seen` is the highest of all earlier reads of the same file. Lower values add nothing:
 * the control library itself takes back charges that were too high and makes them again.
 */
export function addIncrease(total: UsageCounters, seen: UsageCounters, now: UsageCounters): UsageCounters {
  return tabulate(
    (name) => added(total[name], seen[name], now[name]),
    (api) => added(total.denied[api], seen.denied[api], now.denied[api]),
  );
}

/** True when a counter that the control library never lowers has fallen within the same file. */
export function wentBack(before: PaceUsage, now: PaceUsage): boolean {
  return now.launches < before.launches || now.waits < before.waits || now.throttledNs < before.throttledNs;
}

function tabulate(
  counter: (name: (typeof COUNTERS)[number]) => number,
  denials: (api: DeniedApi) => number,
): UsageCounters {
  const counters = Object.fromEntries(COUNTERS.map((name) => [name, counter(name)])) as Record<
    (typeof COUNTERS)[number],
    number
  >;
  return {
    ...counters,
    denied: Object.fromEntries(DENIED_APIS.map((api) => [api, denials(api)])) as Record<DeniedApi, number>,
  };
}

function added(total: number, before: number, now: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, total + Math.max(0, now - before));
}
