import { rm } from 'node:fs/promises';
import * as z from 'zod';
import { writeFileAtomically } from '../../../host/atomic-file.js';
import { readReachableFile } from '../../../host/reachable-file.js';

const amount = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);

const suspension = z.object({
  step: z.enum(['suspending', 'suspended', 'resuming']),
  sinceMs: amount,
  gpuUuid: z.string(),
  usedBytes: amount,
  processes: z.array(z.object({ pid: amount, startTicks: amount, bytes: amount })),
});

/**
 * What happens to a container's processes: `usedBytes` of the GPU were in use before, by all containers, and `bytes` by
 * each process. A process is known by its pid on the host and its start time.
 */
export type Suspension = z.infer<typeof suspension>;

/** Reads the record of an earlier run; null if there is none. Rejects if it cannot be read. */
export async function readSuspension(path: string): Promise<Suspension | null> {
  try {
    return suspension.parse(JSON.parse((await readReachableFile(path)).toString('utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export function writeSuspension(path: string, record: Suspension): Promise<void> {
  return writeFileAtomically(path, `${JSON.stringify(record)}\n`, { mode: 0o600 });
}

export function removeSuspension(path: string): Promise<void> {
  return rm(path, { force: true });
}
