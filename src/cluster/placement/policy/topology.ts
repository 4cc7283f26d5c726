import { positionsOf, size, type BitSet } from '../../../gpu/placement/bit-set.js';
import { machineOf, type Exact } from '../../../gpu/placement/machine.js';
import { place } from '../../../gpu/placement/place.js';
import { setScore } from '../../../gpu/placement/score.js';
import { JOB_SIZES } from '../../../gpu/placement/future-value.js';
import { isInstance } from '../../../gpu/mig.js';
import { CORES_PER_GPU } from '../../../gpu/resources.js';
import type { Topology } from '../../../gpu/topology/topology.js';
import type { Demand } from '../demand.js';
import { emptyState, slotsOf, sumCores, type ClusterNode, type FreeState, type NodeShape } from '../node.js';
import type { PlacementCost, Judge, Policy } from './policy.js';

/**
 * Gives a container that requests several GPUs the best connected ones, and keeps well connected GPUs together for such
 * containers: smaller requests go where they break up the fewest connections.
 */
export const topology: Policy = { name: 'topology', usesMix: false, inWords, judge: () => new TopologyJudge() };

function inWords({ primary }: PlacementCost): string {
  if (primary < 0) return `the GPUs would be connected by ${Math.round(-primary)} points a pair`;
  return primary === 0 ? 'breaks up no connected GPUs' : `breaks up connected GPUs (${Math.round(primary)})`;
}

class TopologyJudge implements Judge {
  /** By machine, then by free GPUs and number of requested GPUs: the mean score of a pair in the best set. */
  readonly #best = new WeakMap<Topology, Map<number, number>>();

  cost(node: ClusterNode, after: FreeState, demand: Demand): PlacementCost {
    const before = wholeOf(node.shape, node.free);
    const taken = size(before) - size(wholeOf(node.shape, after));
    const largest = Math.max(0, ...demand.containers.map(({ cores }) => Math.floor(cores / CORES_PER_GPU)));
    const lost = this.#lost(node.shape.topology, before, taken);
    if (largest < 2) return { primary: lost, tieBreak: sumCores(after) };
    return { primary: -this.#connection(node.shape, before, largest), tieBreak: lost };
  }

  #connection(shape: NodeShape, free: BitSet, count: number): number {
    let known = this.#best.get(shape.topology);
    if (known === undefined) this.#best.set(shape.topology, (known = new Map<number, number>()));
    const key = free * 32 + count;
    let score = known.get(key);
    if (score === undefined) known.set(key, (score = meanPairScore(shape, free, count)));
    return score;
  }

  /**
   * The least loss in future value when `taken` of the free GPUs are used: points per pair, summed over the job sizes.
   */
  #lost(machine: Topology, free: BitSet, taken: number): number {
    const { exact } = machineOf(machine);
    if (taken === 0 || exact === null) return 0;
    const before = worthOf(exact, free);
    let rest = free;
    for (let left = taken; left > 0; left--) {
      let best = 0;
      let bestFutureValue = -1;
      for (const position of positionsOf(rest)) {
        const futureValue = worthOf(exact, rest & ~(1 << position));
        if (futureValue > bestFutureValue) [best, bestFutureValue] = [position, futureValue];
      }
      rest &= ~(1 << best);
    }
    return before - worthOf(exact, rest);
  }
}

/** The points of one NVLink in `setScore`. */
const LINK_POINTS = 100;

/**
 * The future value of the free GPUs, which is the value of their best sets for later jobs: points per pair, summed over
 * the job sizes.
 */
function worthOf({ nvlink, pcie }: Exact, free: BitSet): number {
  const [links, near] = [nvlink.futureValue.of(free), pcie.futureValue.of(free)];
  return JOB_SIZES.reduce((sum, jobSize, at) => {
    const points = (links[at] ?? 0) * LINK_POINTS + (near[at] ?? 0);
    return sum + points / ((jobSize * (jobSize - 1)) / 2);
  }, 0);
}

function meanPairScore(shape: NodeShape, free: BitSet, count: number): number {
  const state = emptyState(shape.gpus.length);
  for (const position of positionsOf(free)) {
    state.cores[position] = CORES_PER_GPU;
    state.memory[position] = shape.gpus[position]?.gpu.memoryBytes ?? 0;
  }
  const placed = place(shape.topology, slotsOf(shape, state), { cores: count * CORES_PER_GPU, memoryBytes: 0 });
  if (!placed.ok) return 0;
  const positions = placed.gpus.map((gpu) => shape.gpus.findIndex((candidate) => candidate.gpu.index === gpu.index));
  return setScore(shape.topology, positions) / ((count * (count - 1)) / 2);
}

function wholeOf(shape: NodeShape, state: FreeState): BitSet {
  let bits = 0;
  for (let at = 0; at < shape.gpus.length; at++) {
    const slot = shape.gpus[at];
    if ((state.cores[at] as number) >= CORES_PER_GPU && slot?.usable === true && !isInstance(slot.gpu)) bits |= 1 << at;
  }
  return bits;
}
