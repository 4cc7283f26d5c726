import { checkRequest, dividedRequest, divisionOf } from '../division.js';
import { ANY_GPUS, type GpuSelection } from '../gpu-selection.js';
import { place } from '../placement/place.js';
import type { PlacementOptions } from '../placement/request.js';
import type { GpuSlot } from '../placement/slot.js';
import { checkCores, checkMemory, type ContainerRequest, type RequestRefusal } from '../request.js';
import { CORES_PER_GPU } from '../resources.js';
import { waitingHalf, type WaitingHalf } from './pairing.js';
import {
  brokenRule,
  matchingContainers,
  maySuspend,
  type PendingContainer,
  wantedAmounts,
  type BrokenRule,
  type PendingContainers,
  type ResourceRequest,
} from './pending.js';
import { gpusOffering } from './pick-ids.js';
import { inTurn, plannedGpus } from './pod-plan.js';
import { ownersOf, pluginSlots, reusedWith, type LedgerState, type Reused } from './state.js';

/** The kubelet's GetPreferredAllocation for one resource of one container. */
export interface PreferenceRequest extends ResourceRequest {
  /** Ids that the kubelet may allocate, including `mustInclude`. */
  readonly available: readonly string[];
  /** Ids of init containers of the same pod, which are reused. */
  readonly mustInclude: readonly string[];
  readonly pending: PendingContainers;
}

/** A request for ids of one resource, with all that the choice of the GPUs depends on. */
export interface Question {
  readonly ok: true;
  /** What the container may request of both resources, the most important first. */
  readonly wanted: readonly ContainerRequest[];
  /** What the pod's annotations say about its GPUs. */
  readonly selection: GpuSelection;
  /** The GPUs as this container finds them: what it has already, or reuses, is free. */
  readonly free: readonly GpuSlot[];
  /** Where to look for room for both resources, the best first. */
  readonly scopes: readonly PlacementOptions[];
  /**
   * For memory alone: the GPUs (indexes; empty: any) where the memory suffices at last, for the cores may be unknown,
   * or held by a pod that just ended, until the kubelet offers them. The request for cores decides.
   */
  readonly lastScopes: readonly (readonly number[])[];
  /** The refusal of memory that even unused GPUs do not have; null where they have it. */
  readonly tooLarge: RequestRefusal | null;
}

export function questionOf(state: LedgerState, request: PreferenceRequest): Question | RequestRefusal | BrokenRule {
  const { kind, size, pending } = request;
  const { node, open } = state;
  const known = matchingContainers(pending, kind, size);
  const wrong = kind === 'core' ? wrongCores(state, known, size) : null;
  if (wrong !== null) return wrong;
  const must = ownersOf(state, request.mustInclude);
  const reused = reusedWith(state, request.mustInclude);
  const turn = inTurn(state, known, { kind, size });
  const half = waitingHalf(state, request, must, turn[0]?.selection ?? ANY_GPUS);
  const free = freeFor(state, reused, half, half?.isSuspendable ?? maySuspend(turn[0]));
  const broken = half === null ? brokenRule(known) : null;
  if (broken !== null) return broken;
  // Without knowledge of pods, memory that was joined to the last cores may belong to these cores: allow for it.
  const joined = pending === null && open?.kind === 'joined' ? open.memoryIds.length : 0;
  const wanted = half === null ? wantedAmounts(turn, { kind, size }, free, joined) : [half.wanted];
  // Cores that have their GPU already keep it.
  const isChosen = half !== null && half.coreIds.length > 0 && half.scopes.length === 1;
  const compute = isChosen ? node.gpus.find(({ gpu }) => half.gpus.includes(gpu.index))?.gpu.compute : undefined;
  const selection = isChosen
    ? { ...ANY_GPUS, gpus: Math.max(1, half.gpus.length), ...(compute === undefined ? {} : { compute }) }
    : (turn[0]?.selection ?? ANY_GPUS);
  const hint = turn.find((container) => container.hint.length > 0)?.hint ?? [];
  const among =
    kind === 'core' ? gpusOffering(state, request.available, divisionOf(size, selection).coresEach) : undefined;
  const [first] = wanted;
  const isPredicted =
    first !== undefined &&
    hint.length > 0 &&
    place(node.topology, free, { ...dividedRequest(first, selection), selection }, { mustInclude: must, among: hint })
      .ok;
  const planned =
    half === null && !isPredicted ? plannedGpus(state, reused, turn[0], { pending, wanted, among }) : null;
  return {
    ok: true,
    wanted,
    selection,
    free,
    scopes: [
      ...(half?.scopes ?? []),
      ...(planned === null ? [] : [{ mustInclude: must, among: planned, hint }]),
      // First GPUs whose own ids suffice, then any GPU: ids of another GPU can be used for it.
      ...(half?.isBound === true ? [] : [{ mustInclude: must, among, hint }, { among, hint }, { hint }]),
    ],
    lastScopes: kind === 'memory' && half === null ? [must, []] : [],
    tooLarge: checkMemory(
      first ?? { cores: CORES_PER_GPU, memoryBlocks: size },
      node.gpus.map(({ gpu }) => gpu.memoryBytes),
      divisionOf(first?.cores ?? CORES_PER_GPU, selection).gpus,
    ),
  };
}

function freeFor(
  state: LedgerState,
  { coreIds, memoryIds }: Reused,
  half: WaitingHalf | null,
  isSuspendable: boolean,
): readonly GpuSlot[] {
  const own = {
    coreIds: new Set([...coreIds, ...(half?.coreIds ?? [])]),
    memoryIds: new Set([...memoryIds, ...(half?.memoryIds ?? [])]),
  };
  const free = pluginSlots(state, own, isSuspendable);
  if (half === null || half.coreIds.length === 0) return free;
  // Its cores are allocated, whatever became of the GPU since.
  const cores = Math.min(half.coreIds.length / Math.max(1, half.gpus.length), CORES_PER_GPU);
  return free.map((slot) =>
    half.gpus.includes(slot.gpu.index) ? { ...slot, usable: true, freeCores: Math.max(slot.freeCores, cores) } : slot,
  );
}

/** Checks a number of cores; amounts that are no whole GPUs may be parts of several, if a waiting container says so. */
export function wrongCores(
  { node }: LedgerState,
  known: readonly PendingContainer[],
  size: number,
): RequestRefusal | null {
  const divided = known.filter(({ selection = ANY_GPUS }) => selection.gpus > 1);
  const [first] = divided;
  if (first === undefined) return checkCores(size, node.shareMode);
  const refusals = divided.map((container) => checkRequest(container, container.selection, node.shareMode));
  return refusals.includes(null) ? null : (refusals[0] ?? null);
}
