import type { SimulatedNode } from '../../src/simulation/simulated-node.js';
import type { GivenContainer } from '../../src/simulation/kubelet/kubelet.js';
import type { EmulatedContainer, EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { gpuOf, conflicts, faultsOfPod, type Living } from './given.js';
import { gpuIndexes } from './node.js';
import { container, pod } from './pods.js';

/** Few request shapes, so that nearly every pod can be mistaken for another. */
const SHAPES: readonly (readonly [cores: number, memoryBlocks: number])[] = [
  [10, 4],
  [10, 8],
  [20, 4],
  [20, 8],
  [20, 8],
  [30, 16],
  [50, 32],
  [100, 0],
  [100, 8],
  [200, 0],
  [200, 8],
];

/**
 * Ids of one GPU may stand for another: where a kubelet reuses those of an init container, or fails a pod between two
 * requests.
 */
function hasStrayIds(given: GivenContainer): boolean {
  const gpus = gpuIndexes(given);
  return [...given.coreIds, ...given.memoryIds].some((id) => !gpus.includes(gpuOf(id)));
}

export interface Run {
  readonly node: SimulatedNode;
  readonly random: () => number;
  readonly count: number;
}

export interface Outcome {
  readonly faults: readonly string[];
  /** Share of the containers, without an init container before them, that hold ids of another GPU than theirs. */
  readonly strayShare: number;
  /** Share of the admitted pods that were refused when they started, the last resort without pod knowledge. */
  readonly lateShare: number;
}

/**
 * Submits pods in groups of three, as a controller does, and ends and restarts others meanwhile. Returns the faults.
 */
export async function admitRandomPods({ node, random, count }: Run): Promise<Outcome> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const shaped = (name: string): EmulatedContainer => container(name, ...pick(SHAPES));
  const newPod = (): EmulatedPod => {
    const list = Array.from({ length: random() < 0.8 ? 1 : 2 }, (_, at) => shaped(`c${at}`));
    return pod(list, random() < 0.2 ? [shaped('init')] : []);
  };
  let living: Living[] = [];
  let containers = 0;
  let strays = 0;
  let late = 0;
  let total = 0;
  const faults: string[] = [];
  for (let admissions = 0; admissions < count && faults.length === 0; admissions += 3) {
    while (living.length > 0 && random() < 0.6) {
      const over = pick(living);
      node.kubelet.remove(over.pod.uid);
      living = living.filter((entry) => entry !== over);
    }
    const batch = [newPod(), newPod(), newPod()];
    const admissionsOfBatch = await Promise.all(batch.map((wanted) => node.kubelet.admit(wanted)));
    const admitted = batch.flatMap((wanted, at): Living[] => {
      const admission = admissionsOfBatch[at];
      return admission?.ok === true ? [{ pod: wanted, given: admission.containers }] : [];
    });
    // Containers of different pods start at the same time, and others start again.
    const starting = [...admitted, ...(living.length > 0 ? [pick(living)] : [])];
    const started = await Promise.all(starting.map(async (entry) => ((await start(node, entry.pod)) ? entry : null)));
    const running = admitted.filter((entry) => started.includes(entry));
    late += admitted.length - running.length;
    total += admitted.length;
    living.push(...running);
    for (const { pod: wanted, given } of running) {
      faults.push(...(await faultsOfPod(wanted, given)));
      if (wanted.initContainers.length > 0) continue;
      containers += given.length;
      strays += given.filter(hasStrayIds).length;
    }
    faults.push(...conflicts(living));
  }
  return { faults, strayShare: strays / containers, lateShare: late / total };
}

/** Starts every container of a pod; a pod whose start is refused ends. */
async function start(node: SimulatedNode, wanted: EmulatedPod): Promise<boolean> {
  try {
    for (const initial of wanted.initContainers) await node.kubelet.startContainer(wanted.uid, initial.name);
    await Promise.all(wanted.containers.map((entry) => node.kubelet.startContainer(wanted.uid, entry.name)));
    return true;
  } catch {
    node.kubelet.remove(wanted.uid);
    return false;
  }
}
