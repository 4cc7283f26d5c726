import { rm } from 'node:fs/promises';
import * as z from 'zod';
import { writeFileAtomically } from '../../../host/atomic-file.js';
import { readReachableFile } from '../../../host/reachable-file.js';

const amount = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);

const suspension = z.object({
  step: z.enum(['suspending', 'suspended', 'resuming']),
  sinceMs: amount,
  by: z.enum(['operator', 'pod', 'idle', 'turn']),
  held: z.boolean(),
  gpuUuid: z.string(),
  usedBytes: amount,
  asked: z.string(),
  wantsSinceMs: amount.nullable(),
  processes: z.array(z.object({ pid: amount, startTicks: amount, bytes: amount })),
});

/**
 * What happens to a container's processes. `by`: who wanted it. `held`: calls wait until someone resumes the container;
 * otherwise a call resumes it. `usedBytes` of the GPU were in use before, by all containers, and `bytes` by each
 * process. `asked`: the count of calls that asked for the GPU, before; `wantsSinceMs`: when one did since. A process is
 * known by its pid on the host and its start time.
 */
export type Suspension = z.infer<typeof suspension>;

const kept = z.object({ suspension: suspension.nullable(), served: z.string().nullable() });

/** `served`: the last request of the pod that was carried out or refused. */
export type KeptSuspension = z.infer<typeof kept>;

/** Reads what an earlier run kept; null if there is nothing. Rejects if it cannot be read. */
export async function readSuspension(path: string): Promise<KeptSuspension | null> {
  try {
    return kept.parse(JSON.parse((await readReachableFile(path)).toString('utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export function writeSuspension(path: string, content: KeptSuspension): Promise<void> {
  return writeFileAtomically(path, `${JSON.stringify(content)}\n`, { mode: 0o600 });
}

export function removeSuspension(path: string): Promise<void> {
  return rm(path, { force: true });
}
