/*
 * The arbitrator divides a cluster among its namespaces while their pods run; the quota engine decides which workloads
 * may start. Pure: a situation in, a plan out, without clock and I/O. A caller runs once per period:
 *
 *     let memory = NO_MEMORY;
 *     every period:
 *       const plan = arbitrate({ now, capacity, consumers, pods, pending, disruptions }, memory, { graceMs, cooldownMs, lendReserved });
 *       write each of plan.allocations that changed; an overused consumer reads `reclaimAt` there and may delete pods itself
 *       evict plan.evictions in their order; if the API refuses one (429), mark that pod `isDeferred` and call again
 *       memory = plan.memory
 *
 * Quantities are whole numbers by resource in base units (cpu in thousandths, memory in bytes): requests, not limits.
 * `consumerProblems` validates a specification before it is stored; an empty list accepts it. Defaults: no limit, no
 * reservation, weight 1.
 */
export {
  arbitrate,
  DEFAULT_ARBITRATOR_POLICY,
  NO_MEMORY,
  evictionTimes,
  type Allocation,
  type ArbitrationPlan,
  type ArbitratorMemory,
  type ArbitratorPolicy,
  type Nomination,
  type Situation,
} from './arbitrate.js';
export { cohortOf, cohortSituations, type GroupSituation } from './cohort-situation.js';
export type { ArbitratedGroup, ChargedWorkload, Preemption, Reclaim, RefusedWorkload } from './arbitrated-group.js';
export {
  FittingCounts,
  fittingShapes,
  PLACEMENT,
  type FittingShape,
  type Place,
  type Shape,
} from './fitting-shapes.js';
export { recommendedShape, type RecommendedShape } from './recommended-shape.js';
export { keptKey, type KeptRoom } from './kept-room.js';
export { consumerProblems, type ConsumerProblem, type ConsumerSpec, type ConsumerContext } from './consumer.js';
export { fairShares, type ShareRequest, type FairShares, type FairShareOptions } from './fair-share.js';
export { areaProblems, reservedBeside, sharesByArea, totalReserved, type AreaShareRequest } from './area.js';
export type { Eviction } from './victim.js';
export type { ArbitratedNode } from './node-room.js';
export type { PlannedStart } from './planned-start.js';
export type { WaitingPod } from './waiting-pod.js';
export { planEvictions, type EvictionNeed } from './eviction.js';
export type { RunningPod } from './running-pod.js';
export type { ConsumerUsage } from './consumer-usage.js';
export { limitedResource, limitsOn } from './limit-resource.js';
export { isStorage } from './storage-resource.js';
export { storageShares, type StorageShares, type StorageSituation, type StorageUsage } from './storage.js';
export type { Quantities } from '../../manifests/quantities.js';
