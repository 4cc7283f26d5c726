/*
 * The arbitrator: how a cluster is divided among its namespaces while they run, beside the quota engine, which decides
 * what may start. Pure: a situation in, a plan out, no clock and no I/O of its own. Whoever talks to the API server
 * does, once a period:
 *
 *     let memory = NO_MEMORY;
 *     every period:
 *       const plan = arbitrate({ now, capacity, consumers, pods, pending, disruptions }, memory, { graceMs, cooldownMs, lendReserved });
 *       write each of plan.allocations that differs from what is written; an `overused` consumer sees `reclaimAt` there and may act itself
 *       evict plan.evictions in their order; where the API refuses one (429), mark that pod `isProtected` and call again
 *       memory = plan.memory
 *
 * Quantities are maps of whole numbers by resource, all in base units (cpu in thousandths, memory in bytes): requests,
 * not limits. A specification is checked with `consumerProblems` when it is written; an empty list accepts it. What is
 * not named is not limited, not reserved, and weighs 1.
 */
export {
  arbitrate,
  DEFAULT_ARBITRATOR_POLICY,
  NO_MEMORY,
  remembered,
  type Allocation,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type Hold,
  type Situation,
} from './arbitrate.js';
export { consumerProblems, type ConsumerProblem, type ConsumerSpec, type ConsumerSurroundings } from './consumer.js';
export { fairShares, type ShareRequest, type FairShares, type FairShareOptions } from './fair-share.js';
export { areaProblems, sharesByArea, type AreaShareRequest } from './area.js';
export type { Eviction } from './victim.js';
export type { ArbitratedNode } from './node-room.js';
export type { PlannedStart } from './planned-start.js';
export type { WaitingPod } from './waiting-pod.js';
export { planEvictions, type EvictionNeed } from './eviction.js';
export type { RunningPod } from './running-pod.js';
export type { ConsumerUsage } from './consumer-usage.js';
export { taskByTask, type TaskQueue } from './task-by-task.js';
export type { Quantities } from './quantities.js';
