import { of, total, type Quantities } from '../../manifests/quantities.js';

/** A consumer with equal tasks. */
export interface TaskQueue {
  readonly name: string;
  /** Resources of one task; at least one is above zero. */
  readonly task: Quantities;
  readonly tasks: number;
  /** Default 1. */
  readonly weight?: number | undefined;
}

/**
 * Allocates whole tasks one by one, each to the consumer with the smallest weighted dominant share whose next task
 * fits; among equals to the first by name. For simulations and small demands; `fairShares` is the same with divisible
 * tasks. Returns the names in the order of allocation.
 */
export function taskByTask(queues: readonly TaskQueue[], capacity: Quantities): readonly string[] {
  const states = [...queues]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((queue) => ({ queue, got: 0, each: shareOf(queue, capacity) }));
  const order: string[] = [];
  let used: Quantities = new Map();
  for (;;) {
    const next = states
      .filter(({ queue, got, each }) => got < queue.tasks && each > 0 && fits(queue.task, used, capacity))
      .reduce<(typeof states)[number] | null>(
        (least, state) => (least === null || state.got * state.each < least.got * least.each ? state : least),
        null,
      );
    if (next === null) return order;
    next.got++;
    used = total([used, next.queue.task]);
    order.push(next.queue.name);
  }
}

function shareOf({ task, weight }: TaskQueue, capacity: Quantities): number {
  return (
    [...task].reduce(
      (most, [resource, amount]) => (amount > 0 ? Math.max(most, amount / of(capacity, resource)) : most),
      0,
    ) / (weight ?? 1)
  );
}

function fits(task: Quantities, used: Quantities, capacity: Quantities): boolean {
  return [...task].every(([resource, amount]) => amount === 0 || of(used, resource) + amount <= of(capacity, resource));
}
