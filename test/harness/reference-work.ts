import { openSync, readSync } from 'node:fs';

const schedstat = openSync('/proc/self/schedstat', 'r');
const text = Buffer.alloc(64);
/** A core of 2020 without other work needs this long for one round of the reference work. */
export const REFERENCE_MS = 10;
const REFERENCE_ROUNDS = 8;

/**
 * The CPU time of a fixed work on this machine, in milliseconds: objects, strings and JSON, which the programs handle
 * too. Limits of times are multiples of it, so that they hold on any machine.
 */
export function referenceMs(): number {
  const before = threadCpuMs();
  for (let round = 0; round < REFERENCE_ROUNDS; round++) {
    const pods = new Map<string, object>();
    for (let at = 0; at < 5_000; at++)
      pods.set(`pod-${at}`, { name: `pod-${at}`, labels: { app: `app-${at % 50}` }, cores: at % 100 });
    const read = JSON.parse(JSON.stringify([...pods.values()])) as unknown[];
    if (read.length !== pods.size) throw new Error('JSON lost a pod');
  }
  return (threadCpuMs() - before) / REFERENCE_ROUNDS;
}

/** The CPU time of the main thread, exact to a tick of the kernel; `process.threadCpuUsage` needs Node 23. */
export function threadCpuMs(): number {
  readSync(schedstat, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, text.indexOf(' '))) / 1e6;
}
