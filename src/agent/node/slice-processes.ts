import type { ProcessDocument, ProcessSnapshot } from './process-document.js';
import type { GpuProcess } from '../../gpu/sample.js';
import type { Clock } from '../../host/clock.js';
import type { ProcessCommands } from '../../host/process-commands.js';
import { processStat, processStatus } from '../../host/process-stat.js';
import { userNames } from '../../host/user-names.js';

/** Processes of one answer: a message has at most 4 MiB, and a container may start as many as it likes. */
const MAX_PROCESSES = 500;

/** One GPU of an allocation, with the processes of the last sample. */
export interface ProcessObservation {
  readonly gpuUuid: string;
  readonly gpuIndex: number;
  readonly processes: readonly GpuProcess[];
}

export interface SliceProcessesOptions {
  /** The processes of an allocation; empty for one that is unknown. */
  readonly observe: (allocation: string) => readonly ProcessObservation[];
  readonly commands: Pick<ProcessCommands, 'of'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** The processes of one allocation, with their users and commands as the host's /proc shows them now. */
export async function sliceProcesses(
  allocation: string,
  { observe, commands, clock }: SliceProcessesOptions,
): Promise<ProcessDocument> {
  const all = observe(allocation).flatMap(({ processes, ...gpu }) => processes.map((process) => ({ gpu, process })));
  const names = await userNames();
  const processes: ProcessSnapshot[] = [];
  for (const { gpu, process } of all.slice(0, MAX_PROCESSES))
    processes.push({ ...gpu, ...(await described(process.pid, names, commands)), ...figuresOf(process) });
  return { atMs: clock.now(), allocation, processes, omitted: all.length - processes.length };
}

function figuresOf({ pid, usedMemoryBytes, utilizationPercent }: GpuProcess) {
  return { pid, usedMemoryBytes, usedPercent: utilizationPercent };
}

async function described(pid: number, names: ReadonlyMap<number, string>, commands: Pick<ProcessCommands, 'of'>) {
  const status = processStatus(pid);
  const before = processStat(pid);
  const command = before === null ? null : await commands.of(pid);
  // The pid may belong to another process now, whose command must not be shown.
  const isSame = before !== null && processStat(pid)?.startTicks === before.startTicks;
  return {
    containerPid: status?.namespacePids.at(-1) ?? null,
    uid: status?.uid ?? null,
    user: status === null || status.uid === null ? null : (names.get(status.uid) ?? null),
    command: !isSame || command === null ? null : command === '' ? `[${before.name}]` : command,
  };
}
