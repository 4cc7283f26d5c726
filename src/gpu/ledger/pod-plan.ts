import { dividedRequest } from '../division.js';
import { ANY_GPUS } from '../gpu-selection.js';
import { placePod } from '../pods/pod-placement.js';
import type { ContainerRequest } from '../request.js';
import { coreIdsOf, memoryIdsOf } from './allocation.js';
import { maySuspend, type PendingContainer, type PendingContainers, type ResourceRequest } from './pending.js';
import { ownersOf, pluginSlots, type LedgerState, type Reused } from './state.js';

/**
 * The waiting containers `known` that may send this request and have no answer yet, oldest first, and of each pod only
 * the first, for the kubelet asks for its containers one after another; all of them if each seems to have an answer.
 *
 * A container that was answered still looks pending until it starts, so answers of this size without a known owner are
 * subtracted: each stands for the oldest container with that prediction or, if it went to other GPUs, for the oldest
 * container that is left.
 */
export function inTurn(
  state: LedgerState,
  known: readonly PendingContainer[],
  { kind, size }: ResourceRequest,
): readonly PendingContainer[] {
  const unowned = [...state.allocations.values()].filter(({ owners }) => owners.length === 0);
  const answered = [
    ...unowned.map((allocation) => (kind === 'core' ? coreIdsOf(allocation) : memoryIdsOf(allocation))),
    ...(kind === 'memory' ? state.halves.map(({ memoryIds }) => memoryIds) : []),
  ].flatMap((ids) => (ids.length === size ? ownersOf(state, ids).join() : []));
  const waiting = known.filter(({ hint }) => {
    const at = answered.indexOf([...hint].sort((a, b) => a - b).join());
    if (at >= 0) answered.splice(at, 1);
    return at < 0;
  });
  const left = waiting.slice(answered.length);
  if (left.length === 0) return known;
  const pods = left.map(({ podUid }) => podUid);
  return left.filter(({ podUid }, at) => pods.indexOf(podUid) === at);
}

interface PlanNeeds {
  readonly pending: PendingContainers;
  /** What the asking container may request, the most important first. */
  readonly wanted: readonly ContainerRequest[];
  /** The GPUs (indexes) that it may get; absent: any. */
  readonly among: readonly number[] | undefined;
}

/**
 * The GPUs (indexes) of the asking container in a plan that has room for it and for all containers of its pod that ask
 * after it, as the scheduler extender plans them. Null where none ask after it, or without such a plan. A plan on the
 * GPUs that the extender predicted for these containers comes first.
 */
export function plannedGpus(
  state: LedgerState,
  reused: Reused,
  asking: PendingContainer | undefined,
  { pending, wanted, among }: PlanNeeds,
): readonly number[] | null {
  if (asking === undefined || pending === null) return null;
  const after = pending
    .slice(pending.indexOf(asking) + 1)
    .filter(({ podUid, cores }) => podUid === asking.podUid && cores > 0);
  if (after.length === 0) return null;
  const isSuspendable = maySuspend(asking);
  const taken = pluginSlots(state, undefined, isSuspendable);
  // What init containers leave to the containers after them.
  const left = new Map(
    pluginSlots(state, reused, isSuspendable).flatMap(({ freeCores, freeMemoryBytes }, at) => {
      const cores = freeCores - (taken[at]?.freeCores ?? 0);
      const memoryBytes = freeMemoryBytes - (taken[at]?.freeMemoryBytes ?? 0);
      return cores + memoryBytes > 0 ? [[at, { cores, memoryBytes }] as const] : [];
    }),
  );
  const predicted = after.flatMap(({ hint }) => hint);
  for (const only of [...(predicted.length > 0 ? [[...predicted, ...asking.hint]] : []), among, undefined]) {
    const slots = taken.map((slot) => ({ ...slot, usable: slot.usable && only?.includes(slot.gpu.index) !== false }));
    for (const amounts of wanted.filter((each) => covers(each, asking))) {
      const demands = [{ ...asking, ...amounts }, ...after].map((each, container) => ({
        container,
        ...dividedRequest(each, each.selection),
        isInit: each.isInit === true,
      }));
      const placed = placePod(
        state.node,
        slots,
        {
          init: demands.filter(({ isInit }) => isInit),
          containers: demands.filter(({ isInit }) => !isInit),
          selection: { ...(asking.selection ?? ANY_GPUS), gpus: Math.max(...demands.map(({ gpus = 1 }) => gpus)) },
        },
        left,
      );
      const own = placed.ok ? [...placed.init, ...placed.containers][0]?.indexes : undefined;
      if (own?.every((index) => among?.includes(index) !== false) === true) return own;
    }
  }
  return null;
}

function covers(a: ContainerRequest, b: ContainerRequest): boolean {
  return a.cores >= b.cores && a.memoryBlocks >= b.memoryBlocks;
}
