import type { Driver, GpuDetails, Inventory } from './driver.js';
import { driverBranch } from './driver-branch.js';

/** `--sm-gpus`: the GPUs whose multiprocessors containers share, by MPS. The others are shared in time. */
export type SmGpus = 'none' | 'every' | ReadonlySet<string>;

/** The first branch of NVIDIA's driver whose MPS has servers and namespaces (version 3 of its protocol). */
const FIRST_BRANCH = 615;

/** The driver, whose inventories say which GPUs are shared in multiprocessors. */
export function withSmGpus(driver: Driver, smGpus: SmGpus): Driver {
  if (smGpus === 'none') return driver;
  return {
    name: driver.name,
    partitioner: driver.partitioner,
    groupLimiter: driver.groupLimiter,
    inventory: async () => markSmGpus(await driver.inventory(), smGpus),
    sample: (uuid) => driver.sample(uuid),
    processes: (uuid) => driver.processes(uuid),
    energyMillijoules: (uuid) => driver.energyMillijoules(uuid),
    subscribe: (listener) => driver.subscribe(listener),
    close: () => driver.close(),
  };
}

/** Marks the GPUs that are shared in multiprocessors, and notes why others of `smGpus` are not. */
export function markSmGpus(inventory: Inventory, smGpus: SmGpus): Inventory {
  if (smGpus === 'none') return inventory;
  const problem = driverProblem(inventory);
  const wanted = ({ uuid }: GpuDetails): boolean => smGpus === 'every' || smGpus.has(uuid);
  const named = inventory.gpus.filter(wanted);
  const usable = problem === null ? named.filter(({ instance }) => instance === undefined) : [];
  const absent = smGpus === 'every' ? [] : [...smGpus].filter((uuid) => named.every((gpu) => gpu.uuid !== uuid));
  const notes = [
    ...(problem === null ? [] : [problem]),
    ...(problem === null && usable.length < named.length ? ['MIG instances are shared in time'] : []),
    ...absent.map((uuid) => `this node has no GPU ${uuid} that can be shared`),
  ];
  return {
    ...inventory,
    gpus: inventory.gpus.map((gpu) => (usable.includes(gpu) ? { ...gpu, compute: 'sm' } : gpu)),
    notes: [...inventory.notes, ...notes.map((note) => `--sm-gpus: ${note}`)],
  };
}

function driverProblem(inventory: Inventory): string | null {
  if (driverBranch(inventory) >= FIRST_BRANCH) return null;
  const version = inventory.driverVersion ?? 'of unknown version';
  return `driver ${version} cannot divide multiprocessors between containers, expected ${FIRST_BRANCH} or later; the GPUs are shared in time`;
}
