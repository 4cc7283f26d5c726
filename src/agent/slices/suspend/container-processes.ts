import type { ProcessSlot } from '../../../abi/usage-file.js';
import { PROCESS_START_MODULUS } from '../../../abi/usage-file.js';
import type { Clock } from '../../../host/clock.js';
import { namespacePids, processStat } from '../../../host/process-stat.js';
import type { GpuSource } from '../../gpus/index.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import { freeGroupBytes, freeHostBytes } from './host-memory.js';
import { suspendObstacles, type SeenProcess } from './obstacles.js';

export interface ContainerProcessesOptions {
  readonly owners: ProcessOwners;
  readonly source: GpuSource;
  readonly driverVersion: () => string | null;
  readonly clock: Clock;
}

/** The processes of containers that use their GPUs, and why they cannot be suspended. */
export class ContainerProcesses {
  readonly #options: ContainerProcessesOptions;

  constructor(options: ContainerProcessesOptions) {
    this.#options = options;
  }

  /** The greeted processes of a slice, and all others that the driver lists for it. */
  async of(slice: Slice): Promise<SeenProcess[]> {
    const { source, owners, clock } = this.#options;
    const lists = await Promise.all(slice.spec.devices.map(({ uuid }) => source.processes(uuid)));
    const listed = lists.flat();
    await owners.learn(
      listed.map(({ pid }) => pid),
      clock.now(),
    );
    const slots = (slice.usage.ok ? slice.usage.reader.processes() : null) ?? [];
    const greeted = [...slice.sessions].map(({ pid, startTicks, greeting }): SeenProcess => {
      const slot = slots.find((one) => one.slot === greeting.slot && one.pid === greeting.pid);
      const onGpu = listed.filter((one) => one.pid === pid);
      const bytes = onGpu.reduce<number | null>(
        (all, { usedMemoryBytes }) => (all === null || usedMemoryBytes === null ? null : all + usedMemoryBytes),
        0,
      );
      return { pid, startTicks, bytes, obstacles: slot?.obstacles ?? null };
    });
    const known = new Set(greeted.map(({ pid }) => pid));
    const others = [...new Map(listed.map((one) => [one.pid, one])).values()]
      .filter(({ pid }) => !known.has(pid) && owners.ownerOf(pid)?.allocation === slice.id)
      .map(({ pid, usedMemoryBytes }): SeenProcess => {
        const startTicks = processStat(pid)?.startTicks ?? null;
        const slot = slice.hasKeptLimits ? ownSlot(slots, pid, startTicks) : undefined;
        return { pid, startTicks, bytes: usedMemoryBytes, obstacles: slot?.obstacles ?? null };
      });
    return [...greeted, ...others];
  }

  /** `comingBytes`: what other suspensions under way will take of the host. */
  async obstacles(slice: Slice, processes: readonly SeenProcess[], comingBytes: number): Promise<string[]> {
    const hostBytes = await freeHostBytes();
    const groups = await Promise.all(
      processes.map(({ pid }) => (pid === null ? Promise.resolve(null) : freeGroupBytes(pid))),
    );
    return suspendObstacles({
      architecture: process.arch,
      driverVersion: this.#options.driverVersion(),
      unenforced: slice.unenforced,
      isSuspendable: slice.limits.isSuspendable,
      gpuUuids: slice.spec.devices.map(({ uuid }) => uuid),
      processes,
      hostBytes: hostBytes === null ? null : hostBytes - comingBytes,
      groupBytes: groups.reduce<number | null>(
        (least, free) => (least === null || free === null ? null : Math.min(least, free)),
        Infinity,
      ),
    });
  }
}

/**
 * The slot of a process that greeted an earlier agent, and has made no call since: by its pid in the container and its
 * start time.
 */
function ownSlot(slots: readonly ProcessSlot[], pid: number, startTicks: number | null): ProcessSlot | undefined {
  const inner = namespacePids(pid).at(-1);
  if (inner === undefined || startTicks === null) return undefined;
  return slots.find((slot) => slot.pid === inner && slot.startTicks === startTicks % PROCESS_START_MODULUS);
}
