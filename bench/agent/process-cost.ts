import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of a process, all threads together, in seconds; of living threads, in nanosecond resolution. */
export function cpuSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return (
    threads.reduce(
      (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]),
      0,
    ) / 1e9
  );
}

/** CPU time of the main thread of a process, in seconds. */
export function mainThreadSeconds(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e9;
}

/** Resident memory of a process, in MiB. */
export function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
}
