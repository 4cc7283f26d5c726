import { gpusOf } from '../../gpu/pods/pod-placement.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';
import { sumCores, type ClusterNode } from './node.js';
import type { ScratchStates } from './scratch.js';

/**
 * How many pods of this demand have room on a node on which one fits, beside reservations; for pods of several
 * containers an estimate by their cores.
 */
export function podRoom(node: ClusterNode, demand: Demand, scratch: ScratchStates): number {
  const { containers, init } = demand;
  const state = scratch.of(node);
  node.copyUnreserved(state, demand);
  const asked = containers.length > 0 ? containers : init;
  const [only] = asked;
  const cores = asked.reduce((sum, { cores, gpus = 1 }) => sum + cores * gpus, 0);
  let room = 0;
  if (only === undefined || asked.length > 1) room = sumCores(state) / cores;
  else if (only.cores >= CORES_PER_GPU) {
    const whole = state.cores.filter((free) => free === CORES_PER_GPU).length;
    room = (whole * CORES_PER_GPU) / cores;
  } else {
    for (const [at, free] of state.cores.entries()) {
      const byMemory = only.memoryBytes > 0 ? (state.memory[at] ?? 0) / only.memoryBytes : Infinity;
      room += Math.floor(Math.min(free / only.cores, byMemory));
    }
    room /= gpusOf(only);
  }
  return Math.max(1, Math.floor(room));
}
