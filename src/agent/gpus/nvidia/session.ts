import { subTopology } from '../../../gpu/topology/topology.js';
import { DriverError, type ExcludedGpu, type Inventory } from '../driver.js';
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
import type { Nvml } from './nvml.js';
import type { Handle } from './question.js';
import { askTopology } from './topology.js';

/**
 * What is fixed from `nvmlInit` to `nvmlShutdown`: GPUs with their handles, how they are connected, where their errors
 * arrive.
 */
export interface Session {
  readonly nvml: Nvml;
  /** Every GPU that answered, excluded ones too, by UUID. */
  readonly gpus: ReadonlyMap<string, NvmlGpu>;
  readonly inventory: Inventory;
  /** Indexes of GPUs that are there but did not answer. */
  readonly silent: readonly number[];
  /** Null where this driver reports no errors. */
  readonly events: Handle | null;
  /** UUIDs of the GPUs that report by themselves both that they are in trouble and that their memory failed. */
  readonly reporting: ReadonlySet<string>;
  /** What a later survey has to find again, else the machine has changed. */
  readonly fingerprint: string;
}

/**
 * Initialises NVML and asks everything that stays the same. Rejects when the driver does not answer; a GPU that does
 * not is left out, and said.
 */
export async function openSession(nvml: Nvml, kernel: KernelDriver): Promise<Session> {
  await nvml.require(DRIVER_TARGET, identity.init());
  try {
    const total = await countGpus(nvml, kernel);
    const { gpus: found, silent } = await describeGpus(nvml, kernel);
    const shared = found.filter((gpu) => exclusion(gpu) === null);
    const everything = await askTopology(nvml, found);
    const excluded: ExcludedGpu[] = found.flatMap((gpu) => {
      const reason = exclusion(gpu);
      return reason === null ? [] : [{ gpu: gpu.details, reason }];
    });
    const gpus = shared.map((gpu) => gpu.details);
    return {
      nvml,
      gpus: new Map(found.map((gpu) => [gpu.details.uuid, gpu])),
      inventory: {
        driverVersion: await optional(nvml.ask(DRIVER_TARGET, identity.driverVersion())),
        cudaVersion: await optional(nvml.ask(DRIVER_TARGET, identity.cudaVersion())),
        gpus,
        topology: subTopology(
          everything,
          shared.map((gpu) => found.indexOf(gpu)),
        ),
        excluded,
        notes: [...inventoryNotes(gpus, excluded), ...silent.values()],
      },
      ...(await listenForErrors(nvml, found)),
      silent: [...silent.keys()],
      fingerprint: total + modesOf(found),
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

/** What the machine looks like now: compare with the fingerprint of a session. */
export async function surveyMachine(session: Session, kernel: KernelDriver): Promise<string> {
  const { nvml } = session;
  const total = await countGpus(nvml, kernel);
  const known = [...session.gpus.values()].map(async (gpu) => {
    // A GPU that does not answer now has not changed its mode.
    const mig = await nvml.ask(gpu.target, identity.migMode(gpu.handle)).catch(() => gpu.details.mig);
    return { ...gpu, details: { ...gpu.details, mig } };
  });
  const back = session.silent.map(async (index) => {
    const answers = await nvml.ask(`GPU ${index}`, identity.handleByIndex(index)).catch(() => null);
    return answers === null ? '' : `; ${index} answers`;
  });
  return total + modesOf(await Promise.all(known)) + (await Promise.all(back)).join('');
}

/** How many GPUs there are, by NVML's account and by the kernel's. */
async function countGpus(nvml: Nvml, kernel: KernelDriver): Promise<string> {
  const count = await nvml.require(DRIVER_TARGET, identity.deviceCount());
  const held = await kernel.gpus();
  return `${count} GPUs, kernel ${held?.join(' ') ?? 'silent'}`;
}

function modesOf(gpus: readonly NvmlGpu[]): string {
  return gpus.map(({ details }) => `; ${details.index} ${details.uuid} ${details.mig}`).join('');
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
      silent.set(index, `GPU ${index} does not answer and is left out: ${error.message}`);
    }
  }
  return { gpus, silent };
}

function exclusion(gpu: NvmlGpu): string | null {
  return gpu.details.mig === true ? 'it is cut into MIG instances, which are not shared further' : null;
}

/** Subscribes to what GPUs report: to every kind that each supports. */
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
