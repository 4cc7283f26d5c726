import type { Obstacle } from '../../../abi/usage-file.js';

/** One process of a container, as the agent sees it. */
export interface SeenProcess {
  /** On the host; null if the agent cannot see it. */
  readonly pid: number | null;
  readonly startTicks: number | null;
  /** What it has on the GPU; null if the driver does not tell. */
  readonly bytes: number | null;
  /** Null if its control library does not tell, or it uses none. */
  readonly obstacles: readonly Obstacle[] | null;
}

/** All that decides whether a container can be suspended. */
export interface SuspendFacts {
  /** As Node names it. */
  readonly architecture: string;
  /** Such as `580.95.05`; null if unknown. */
  readonly driverVersion: string | null;
  readonly unenforced: boolean;
  /** Whether its calls can ask for the GPU. */
  readonly isSuspendable: boolean;
  readonly gpuUuids: readonly string[];
  readonly processes: readonly SeenProcess[];
  /** Free memory of the host; null if unknown. */
  readonly hostBytes: number | null;
  /** What the control groups of its processes may still use; null if unknown. */
  readonly groupBytes: number | null;
}

/** The driver of this branch is the first with the calls. */
const FIRST_BRANCH = 570;
/** Memory of the host that a suspension leaves free. */
const HOST_RESERVE_BYTES = 2 ** 30;
/** Memory that a suspension leaves to the container itself. */
const GROUP_RESERVE_BYTES = 256 * 2 ** 20;
const MIB = 2 ** 20;

const SENTENCES: Readonly<Record<Obstacle, string>> = {
  managed: 'it has managed memory',
  shared: 'it shares GPU memory or events with other processes',
  external: 'it has memory of another interface, such as Vulkan',
};

/** Bytes as `12 MiB`, rounded up. */
export const mib = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** Why a container cannot be suspended, in words; empty: it can. Pure. */
export function suspendObstacles(facts: SuspendFacts): string[] {
  const branch = Number.parseInt(facts.driverVersion ?? '', 10);
  const bytes = facts.processes.reduce((sum, process) => sum + (process.bytes ?? 0), 0);
  return [
    ...(facts.architecture === 'x64'
      ? []
      : [`the driver suspends processes on x86-64 only, not on ${facts.architecture}`]),
    ...(branch >= FIRST_BRANCH
      ? []
      : [`driver ${facts.driverVersion ?? 'unknown'} cannot suspend processes; that needs ${FIRST_BRANCH} or later`]),
    ...(facts.unenforced ? ['its limits are not enforced, so that the library does not see its calls'] : []),
    ...(facts.isSuspendable || facts.unenforced
      ? []
      : ['it started while this node suspended no containers; start it again']),
    ...(facts.gpuUuids.length === 1 ? [] : ['it has several GPUs']),
    ...(facts.gpuUuids.some((uuid) => uuid.startsWith('MIG-')) ? ['its GPU is a MIG instance'] : []),
    ...(facts.processes.length > 0 ? [] : ['no process of it uses a GPU']),
    ...facts.processes.flatMap(processObstacles),
    ...room('the host', facts.hostBytes, bytes + HOST_RESERVE_BYTES),
    ...room('the memory limit of its pod', facts.groupBytes, bytes + GROUP_RESERVE_BYTES),
  ];
}

function processObstacles({ pid, startTicks, bytes, obstacles }: SeenProcess): string[] {
  if (pid === null || startTicks === null) return ['the agent cannot see one of its processes'];
  if (bytes === null) return [`process ${pid}: the driver does not tell what it has on the GPU`];
  if (obstacles === null)
    return [`process ${pid} runs without the control library, or with an earlier one; start the container again`];
  return obstacles.map((obstacle) => `process ${pid}: ${SENTENCES[obstacle]}`);
}

/** The moved memory is charged to the process, and so to its pod. */
function room(of: string, free: number | null, needed: number): string[] {
  if (free === null) return [`the room of ${of} is not known`];
  return free >= needed ? [] : [`${of} has room for ${mib(Math.max(free, 0))}; ${mib(needed)} are needed`];
}
