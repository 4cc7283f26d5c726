import { levelBetween, linksBetween, topologyOfPairs, type Topology } from '../../../gpu/topology/topology.js';
import type { FoundInstance, PartitionableGpu } from '../../../gpu/mig-partition.js';
import { DriverError, type ExcludedGpu, type GpuDetails, type Inventory } from '../driver.js';
import { inventoryNotes } from '../notes.js';
import { DRIVER_TARGET } from './call-gate.js';
import { describeGpu, optional, type NvmlGpu } from './nvidia-gpu.js';
import {
  EVENT_DOUBLE_BIT_ECC,
  EVENT_XID,
  createEventSet,
  freeEventSet,
  registerEvents,
  supportedEvents,
} from './event-set.js';
import * as identity from './identity.js';
import type { KernelDriver } from './kernel-driver.js';
import { describeInstances, instanceUuids, type Instances } from './mig-instance.js';
import { askPartition, foundInstances } from './mig-partition.js';
import type { Nvml } from './nvml.js';
import type { Handle } from './nvml-call.js';
import { askTopology } from './topology.js';

/**
 * Everything that is constant from `nvmlInit` to `nvmlShutdown`: GPUs with their handles, their topology, and the event
 * set for their errors.
 */
export interface Session {
  readonly nvml: Nvml;
  /** By UUID: every GPU that answered, including excluded GPUs, and the offered MIG instances. */
  readonly gpus: ReadonlyMap<string, NvmlGpu>;
  readonly inventory: Inventory;
  /** Indexes of GPUs that exist but did not answer. */
  readonly silent: readonly number[];
  /** Null if this driver reports no errors. */
  readonly events: Handle | null;
  /** UUIDs of the GPUs that report both kinds of errors, XIDs and memory errors, as events. */
  readonly reporting: ReadonlySet<string>;
  readonly mig: MigUse;
  /** Equal in a later survey unless the machine has changed. */
  readonly fingerprint: string;
}

/**
 * What the session does with GPUs in MIG mode: `excluded`; `instances`: each instance counts as a separate GPU;
 * `partitioned`: the same, and it reads how the GPUs can be divided.
 */
export type MigUse = 'excluded' | 'instances' | 'partitioned';

/**
 * Initialises NVML and reads everything that stays the same. Rejects if the driver does not answer; a GPU that does not
 * answer is left out and reported.
 */
export async function openSession(nvml: Nvml, kernel: KernelDriver, mig: MigUse): Promise<Session> {
  await nvml.require(DRIVER_TARGET, identity.init());
  try {
    const total = await countGpus(nvml, kernel);
    const { gpus: found, silent } = await describeGpus(nvml, kernel);
    const divided = found.filter((gpu) => gpu.details.mig === true);
    const listed = mig === 'excluded' ? NO_INSTANCES : await allInstances(nvml, divided, found.length + silent.size);
    const partitionable = mig === 'partitioned' ? await partitions(nvml, divided) : [];
    const instances = { ...listed, usable: listed.usable.map((gpu) => placed(gpu, partitionable)) };
    const shared = [...found.filter((gpu) => gpu.details.mig !== true), ...instances.usable];
    const excluded: ExcludedGpu[] = [
      ...divided.map((gpu) => ({ gpu: gpu.details, reason: exclusion(gpu, instances.usable, partitionable, mig) })),
      ...instances.excluded,
    ];
    const gpus = shared.map((gpu) => gpu.details);
    return {
      nvml,
      gpus: new Map([...found, ...instances.usable].map((gpu) => [gpu.details.uuid, gpu])),
      inventory: {
        driverVersion: await optional(nvml.ask(DRIVER_TARGET, identity.driverVersion())),
        cudaVersion: await optional(nvml.ask(DRIVER_TARGET, identity.cudaVersion())),
        gpus,
        topology: topologyOf(shared, found, await askTopology(nvml, found)),
        excluded,
        partitionable,
        notes: [...inventoryNotes(gpus, excluded), ...silent.values()],
      },
      ...(await listenForErrors(nvml, found)),
      silent: [...silent.keys()],
      mig,
      fingerprint: [total, ...found.map((gpu) => knownMode(gpu, listed, partitionable))].join(''),
    };
  } catch (error) {
    await nvml.ask(DRIVER_TARGET, identity.shutdown()).catch(() => null);
    throw error;
  }
}

/** Releases handles and events. Errors are ignored at this point. */
export async function closeSession(session: Session): Promise<void> {
  if (session.events !== null) await session.nvml.ask(DRIVER_TARGET, freeEventSet(session.events)).catch(() => null);
  await session.nvml.ask(DRIVER_TARGET, identity.shutdown()).catch(() => null);
}

/** The present state of the machine, to be compared with the fingerprint of a session. */
export async function surveyMachine(session: Session, kernel: KernelDriver): Promise<string> {
  const { nvml } = session;
  const physical = [...session.gpus.values()].filter((gpu) => gpu.details.instance === undefined);
  const known = physical.map(async (gpu) => {
    // A GPU that does not answer now keeps its last known mode.
    const mig = await nvml.ask(gpu.target, identity.migMode(gpu.handle)).catch(() => gpu.details.mig);
    return { ...gpu, details: { ...gpu.details, mig } };
  });
  const total = await countGpus(nvml, kernel);
  const back = session.silent.map(async (index) => {
    const answers = await nvml.ask(`GPU ${index}`, identity.handleByIndex(index)).catch(() => null);
    return answers === null ? '' : `; ${index} answers`;
  });
  const modes = (await Promise.all(known)).map((gpu) => presentMode(session, gpu));
  return [total, ...(await Promise.all([...modes, ...back]))].join('');
}

/** The number of GPUs according to NVML and to the kernel. */
async function countGpus(nvml: Nvml, kernel: KernelDriver): Promise<string> {
  const count = await nvml.require(DRIVER_TARGET, identity.deviceCount());
  const held = await kernel.gpus();
  return `${count} GPUs, kernel ${held?.join(' ') ?? 'silent'}`;
}

/** The mode of a GPU and its instances, to be compared. */
function modeOf(
  { details: { index, uuid, mig } }: NvmlGpu,
  instances: readonly string[],
  found?: readonly FoundInstance[] | null,
): string {
  const places = found?.map(({ profileId, start, uuids }) => [profileId, start, ...uuids].join(':'));
  return `; ${index} ${uuid} ${mig} ${[...instances].sort().join()} ${places?.join() ?? 'unknown'}`;
}

function knownMode(gpu: NvmlGpu, { usable, excluded }: Instances, partitionable: readonly Partitionable[]): string {
  const { uuid } = gpu.details;
  const instances = [...usable.map(({ details }) => details), ...excluded.map((one) => one.gpu)];
  return modeOf(
    gpu,
    instances.filter(({ instance }) => instance?.parentUuid === uuid).map((one) => one.uuid),
    partitionable.find((one) => one.gpu.uuid === uuid)?.found,
  );
}

async function presentMode({ nvml, mig, inventory }: Session, gpu: NvmlGpu): Promise<string> {
  if (mig === 'excluded' || gpu.details.mig !== true) return modeOf(gpu, []);
  const listed = await instanceUuids(nvml, gpu).catch(() => []);
  if (mig === 'instances') return modeOf(gpu, listed);
  const known = inventory.partitionable?.find((one) => one.gpu.uuid === gpu.details.uuid);
  const ask = async () =>
    known === undefined ? (await askPartition(nvml, gpu))?.found : foundInstances(nvml, gpu, known.profiles);
  return modeOf(gpu, listed, await ask().catch(() => null));
}

type Partitionable = PartitionableGpu<GpuDetails>;

const NO_INSTANCES: Instances = { usable: [], excluded: [] };

async function allInstances(nvml: Nvml, divided: readonly NvmlGpu[], firstIndex: number): Promise<Instances> {
  let all = NO_INSTANCES;
  for (const gpu of divided) {
    const { usable, excluded } = all;
    const more = await describeInstances(nvml, gpu, firstIndex + usable.length + excluded.length);
    all = { usable: [...usable, ...more.usable], excluded: [...excluded, ...more.excluded] };
  }
  return all;
}

/**
 * The topology of the shared GPUs, taken from their physical GPUs; instances of one GPU are near each other, and none
 * uses NVLink.
 */
function topologyOf(shared: readonly NvmlGpu[], physical: readonly NvmlGpu[], whole: Topology): Topology {
  const places = shared.map(({ board }) => physical.findIndex(({ handle }) => handle === board));
  return topologyOfPairs(shared.length, (a, b) => {
    const [x, y] = [places[a] as number, places[b] as number];
    if (x === y) return { level: 'PIX', nvlinks: 0 };
    const isPart = [a, b].some((at) => shared[at]?.details.instance !== undefined);
    return { level: levelBetween(whole, x, y), nvlinks: isPart ? 0 : linksBetween(whole, x, y) };
  });
}

async function describeGpus(
  nvml: Nvml,
  kernel: KernelDriver,
): Promise<{ gpus: NvmlGpu[]; silent: Map<number, string> }> {
  const count = await nvml.require(DRIVER_TARGET, identity.deviceCount());
  const gpus: NvmlGpu[] = [];
  const silent = new Map<number, string>();
  for (let index = 0; index < count; index++) {
    try {
      gpus.push(await describeGpu(nvml, kernel, index));
    } catch (error) {
      if (!(error instanceof DriverError) || error.code === 'unreachable') throw error;
      silent.set(index, `GPU ${index} does not answer and is excluded: ${error.message}`);
    }
  }
  return { gpus, silent };
}

/** How the driver can divide these GPUs; a GPU that does not tell is left out. */
async function partitions(nvml: Nvml, divided: readonly NvmlGpu[]): Promise<readonly Partitionable[]> {
  const all: Partitionable[] = [];
  for (const gpu of divided) {
    const partition = await askPartition(nvml, gpu);
    if (partition !== null) all.push(partition);
  }
  return all;
}

/** The instance with its placement, if the agent divides its GPU. */
function placed(instance: NvmlGpu, partitionable: readonly Partitionable[]): NvmlGpu {
  const { details } = instance;
  if (details.instance === undefined) return instance;
  const gpu = partitionable.find((one) => one.gpu.uuid === details.instance?.parentUuid);
  const found = gpu?.found.find(({ uuids }) => uuids.includes(details.uuid));
  const profile = gpu?.profiles.find(({ id }) => id === found?.profileId);
  if (found === undefined || profile === undefined) return instance;
  const { profileId, start } = found;
  // The name by which the place is published.
  const at = { ...details.instance, profile: profile.name, placement: { profileId, start } };
  return { ...instance, details: { ...details, instance: at } };
}

function exclusion(
  { details }: NvmlGpu,
  instances: readonly NvmlGpu[],
  partitionable: readonly Partitionable[],
  mig: MigUse,
): string {
  if (mig === 'excluded')
    return 'it is partitioned into MIG instances; --mig-strategy=shared, whole or dynamic offers them';
  if (partitionable.some(({ gpu }) => gpu.uuid === details.uuid)) return 'claims get its MIG instances';
  if (mig === 'partitioned')
    return 'the driver does not list its MIG profiles and instances; the agent needs root and the capability mig/config';
  const own = instances.filter((instance) => instance.details.instance?.parentUuid === details.uuid).length;
  return own === 0 ? 'MIG is on, and it has no instance' : 'its MIG instances are offered';
}

/** Subscribes to all kinds of errors that each GPU supports. */
async function listenForErrors(nvml: Nvml, gpus: readonly NvmlGpu[]): Promise<Pick<Session, 'events' | 'reporting'>> {
  const events = await optional(nvml.ask(DRIVER_TARGET, createEventSet()));
  const reporting = new Set<string>();
  if (events === null) return { events, reporting };
  for (const gpu of gpus) {
    const supported = await optional(nvml.ask(gpu.target, supportedEvents(gpu.handle)));
    const types = (supported ?? 0n) & (EVENT_XID | EVENT_DOUBLE_BIT_ECC);
    const registered =
      types !== 0n && (await optional(nvml.ask(gpu.target, registerEvents(gpu.handle, types, events)))) === true;
    if (registered && types === (EVENT_XID | EVENT_DOUBLE_BIT_ECC)) reporting.add(gpu.details.uuid);
  }
  return { events, reporting };
}
