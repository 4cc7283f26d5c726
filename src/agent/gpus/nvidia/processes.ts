import type { GpuProcess } from '../../../gpu/sample.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import { CONTEXTS, processShares, runningProcesses, type ProcessShare, type RunningProcess } from './load.js';
import type { Nvml } from './nvml.js';
import type { Listed, NvmlCall } from './nvml-call.js';

/** Room for the first call; the driver reports when it needs more. */
const FIRST_ROOM = 64;
const MAX_ROOM = 65_536;

/** Processes on a GPU with the use of each; a process with several kinds of context is listed once. */
export async function askProcesses(nvml: Nvml, gpu: NvmlGpu, sinceMs: number): Promise<readonly GpuProcess[]> {
  const runningIn = CONTEXTS.map((context) => (room: number) => runningProcesses(gpu.handle, context, room));
  const sharesOf = (room: number): NvmlCall<Listed<ProcessShare>> => processShares(gpu.handle, sinceMs * 1000, room);
  const answers = nvml.askAll<[...Listed<RunningProcess>[], Listed<ProcessShare>]>(gpu.target, [
    ...runningIn.map((call) => call(FIRST_ROOM)),
    sharesOf(FIRST_ROOM),
  ]);
  const memory = new Map<number, number | null>();
  for (const [at, call] of runningIn.entries()) {
    const running = (await askList(nvml, gpu, call, answers[at] as Promise<Listed<RunningProcess> | null>)) ?? [];
    // Both context lists show the memory of a process's compute and graphics contexts together, so the larger value is
    // the total.
    for (const { pid, usedMemoryBytes } of running) memory.set(pid, larger(memory.get(pid) ?? null, usedMemoryBytes));
  }
  const shares = await askList(nvml, gpu, sharesOf, answers.at(-1) as Promise<Listed<ProcessShare> | null>);
  const percents = new Map<number, number>();
  for (const { pid, utilizationPercent } of shares ?? []) if (!percents.has(pid)) percents.set(pid, utilizationPercent);
  return Array.from(memory, ([pid, usedMemoryBytes]) => ({
    pid,
    usedMemoryBytes,
    utilizationPercent: shares === null ? null : (percents.get(pid) ?? 0),
  }));
}

/** Null if there is no answer. `first` is the answer to the call with the first room. */
async function askList<T>(
  nvml: Nvml,
  gpu: NvmlGpu,
  call: (room: number) => NvmlCall<Listed<T>>,
  first: Promise<Listed<T> | null>,
): Promise<readonly T[] | null> {
  let answer = await optional(first);
  for (let room = FIRST_ROOM; answer !== null && 'needed' in answer;) {
    // More processes may have started since the driver counted.
    room = Math.max(room, answer.needed) * 2;
    if (room > MAX_ROOM) return null;
    answer = await optional(nvml.ask(gpu.target, call(room)));
  }
  return answer === null ? null : answer.entries;
}

function larger(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
