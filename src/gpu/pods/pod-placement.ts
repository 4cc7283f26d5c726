import type { GpuSelection } from '../gpu-selection.js';
import { place } from '../placement/place.js';
import type { GpuSlot } from '../placement/slot.js';
import { searchAssignment } from './assignment-search.js';
import { MOST_GPU_CONTAINERS, tooManyContainers } from '../request.js';
import type { GpuSite, PodDemand } from './pod-demand.js';
import {
  advance,
  firstStage,
  indexAt,
  keptFor,
  slotsFor,
  stepsOf,
  type Left,
  type PlacementStage,
  type PlacementStep,
} from './placement-stage.js';

export { chargeOf, gpusOf, type ContainerGpus } from './placement-stage.js';

export type PodPlacement =
  | ({ readonly ok: true } & Pick<PlacementStage, 'init' | 'containers' | 'charges'>)
  | {
      readonly ok: false;
      readonly reason: string;
      /** False if the search ended before all assignments were tried: one may exist that was not found. */
      readonly isProven: boolean;
      /** Whether another call would continue the search. */
      readonly isUnfinished: boolean;
    };

/**
 * Chooses the GPUs of all containers of a pod on one node: one container after another as the kubelet does, with the
 * node's own placement, so that the node agent in the same state chooses the same. If that fails, every assignment is
 * searched: the best GPU for one container may be the only one for the next. `slots` are the node's GPUs in that state.
 *
 * An init container's GPUs stay with the pod: the containers after it must reuse them first (the kubelet's
 * `mustInclude`). A refusal names the container that found no GPU, and why. `left` is what init containers that are
 * placed already leave to these containers; `slots` do not count it as free.
 */
export function placePod(shape: GpuSite, slots: readonly GpuSlot[], demand: PodDemand, left?: Left): PodPlacement {
  const inOrder = placeInOrder(shape, slots, demand, left);
  if (inOrder.ok || inOrder.isProven) return inOrder;
  const { stage, isProven, isUnfinished } = searchAssignment(shape, slots, demand, left);
  if (stage !== null) return { ok: true, ...stage };
  return { ...inOrder, isProven, isUnfinished };
}

/** The placement without the search: each container gets the best GPUs of those that the earlier ones left. */
export function placeInOrder(shape: GpuSite, slots: readonly GpuSlot[], demand: PodDemand, left?: Left): PodPlacement {
  const steps = stepsOf(demand);
  if (steps.length > MOST_GPU_CONTAINERS)
    return { ok: false, reason: tooManyContainers(steps.length), isProven: true, isUnfinished: false };
  let stage = firstStage(slots, left);
  for (const step of steps) {
    const chosen = placeContainer(shape, stage, step, demand.selection);
    if (!chosen.ok) {
      const reason = `${step.isInit ? 'init container' : 'container'} ${step.wanted.container}: ${chosen.reason}`;
      return { ok: false, reason, isProven: steps.length === 1, isUnfinished: false };
    }
    stage = advance(shape, stage, step, chosen.positions);
  }
  return { ok: true, ...stage };
}

type Chosen =
  { readonly ok: true; readonly positions: readonly number[] } | { readonly ok: false; readonly reason: string };

function placeContainer(
  shape: GpuSite,
  stage: PlacementStage,
  { wanted }: PlacementStep,
  selection: GpuSelection,
): Chosen {
  const { must, among } = keptFor(stage, wanted);
  const indexes = (positions: readonly number[]) => positions.map((position) => indexAt(shape, position));
  const options = { mustInclude: indexes(must), among: among === null ? undefined : indexes(among) };
  const placed = place(
    shape.topology,
    slotsFor(stage),
    { cores: wanted.cores, memoryBytes: wanted.memoryBytes, gpus: wanted.gpus, selection },
    options,
  );
  if (!placed.ok) return { ok: false, reason: placed.reason };
  const positions = placed.gpus.map((gpu) => shape.gpus.findIndex((candidate) => candidate.gpu.index === gpu.index));
  return { ok: true, positions };
}
