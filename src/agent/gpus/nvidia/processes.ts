import type { GpuProcess } from '../../../gpu/sample.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import { CONTEXTS, processShares, runningProcesses, type ProcessShare, type RunningProcess } from './load.js';
import type { Nvml } from './nvml.js';
import type { Listed, Question } from './question.js';

/** Room for the first call; the driver reports when it needs more. */
const FIRST_ROOM = 64;
const MAX_ROOM = 65_536;

/** Processes on a GPU with the use of each; a process with several kinds of context is listed once. */
export async function askProcesses(nvml: Nvml, gpu: NvmlGpu, sinceMs: number): Promise<readonly GpuProcess[]> {
  const memory = new Map<number, number | null>();
  for (const context of CONTEXTS) {
    const running = await askList<RunningProcess>(nvml, gpu, (room) => runningProcesses(gpu.handle, context, room));
    // Both context lists show the memory of a process's compute and graphics contexts together, so the larger value is
    // the total.
    for (const { pid, usedMemoryBytes } of running) memory.set(pid, larger(memory.get(pid) ?? null, usedMemoryBytes));
  }
  const shares = await askList<ProcessShare>(
    nvml,
    gpu,
    (room) => processShares(gpu.handle, sinceMs * 1000, room),
    null,
  );
  return [...memory].map(([pid, usedMemoryBytes]) => ({
    pid,
    usedMemoryBytes,
    utilizationPercent: shares === null ? null : (shares.find((share) => share.pid === pid)?.utilizationPercent ?? 0),
  }));
}

async function askList<T>(
  nvml: Nvml,
  gpu: NvmlGpu,
  question: (room: number) => Question<Listed<T>>,
): Promise<readonly T[]>;
async function askList<T>(
  nvml: Nvml,
  gpu: NvmlGpu,
  question: (room: number) => Question<Listed<T>>,
  otherwise: null,
): Promise<readonly T[] | null>;
async function askList<T>(
  nvml: Nvml,
  gpu: NvmlGpu,
  question: (room: number) => Question<Listed<T>>,
  otherwise: readonly T[] | null = [],
): Promise<readonly T[] | null> {
  for (let room = FIRST_ROOM; room <= MAX_ROOM;) {
    const answer = await optional(nvml.ask(gpu.target, question(room)));
    if (answer === null) return otherwise;
    if ('entries' in answer) return answer.entries;
    // More processes may have started since the driver counted.
    room = Math.max(room, answer.needed) * 2;
  }
  return otherwise;
}

function larger(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
