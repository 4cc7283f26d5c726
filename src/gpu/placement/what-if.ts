import { pairLabel } from '../topology/matrix-print.js';
import { gpuCount, type Topology } from '../topology/topology.js';
import { isApproximate, place } from './place.js';
import { setScore } from './score.js';
import type { GpuSlot } from './slot.js';
import { CORES_PER_GPU } from '../resources.js';

/** The GPUs that a request for some whole GPUs would get. */
export interface WhatIf {
  readonly count: number;
  /** Indexes of the chosen GPUs. */
  readonly gpus: readonly number[];
  /** How well they are connected; 0 for a single GPU. */
  readonly score: number;
  /** The connection of each pair: `GPU0-GPU3 NV2`. */
  readonly pairs: readonly string[];
  /** True when too many GPUs are free for an exact search: a better set may exist. */
  readonly approximate: boolean;
}

/** The GPUs for each count; null if none can be chosen. */
export function whatIf(
  topology: Topology,
  slots: readonly GpuSlot[],
  counts: readonly number[],
): readonly (WhatIf | null)[] {
  const positions = Array.from({ length: gpuCount(topology) }, (_, position) => position);
  const indexOf = (position: number) => (slots[position] as GpuSlot).gpu.index;
  return counts.map((count) => {
    const placed = place(topology, slots, { cores: count * CORES_PER_GPU, memoryBytes: 0 });
    if (!placed.ok) return null;
    const gpus = placed.gpus.map((gpu) => gpu.index);
    const chosen = positions.filter((position) => gpus.includes(indexOf(position)));
    const pairs = chosen.flatMap((a) =>
      chosen.filter((b) => b > a).map((b) => `GPU${indexOf(a)}-GPU${indexOf(b)} ${pairLabel(topology, a, b)}`),
    );
    return { count, gpus, score: setScore(topology, chosen), pairs, approximate: count > 1 && isApproximate(slots) };
  });
}
