import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encodeLimits } from '../../abi/limits-file.js';
import { packageFile } from '../../host/package-files.js';
import { SliceDirectories } from '../slices/index.js';
import type { LimitedReport, ProbeReport } from './interposition-probe.js';

/** A separate program, also in the bundle. */
const PROBE = packageFile('dist/src/agent/doctor/interposition-probe.js');
const PROBE_TIMEOUT_MS = 20_000;
const ALLOCATION = '00000000000d0c70';

/**
 * Memory limit of the probe process on each GPU, with room for its context. It allocates 16 MiB, which must succeed,
 * and then as much as its limit, which must fail.
 */
export const TRIAL_BYTES = 2 ** 31;

/**
 * Runs the probe with the libraries of a directory, as a container without limits would. Rejects when it crashes, hangs
 * or cannot load them.
 */
export async function runProbe(libraries: string, ...directory: string[]): Promise<ProbeReport> {
  const env = { ...process.env, LD_LIBRARY_PATH: libraries };
  const { stdout } = await promisify(execFile)(process.execPath, [PROBE, ...directory], {
    env,
    timeout: PROBE_TIMEOUT_MS,
  });
  return JSON.parse(stdout) as ProbeReport;
}

/**
 * Runs the probe as a container with a small memory limit on each GPU, whose UUIDs have 32 hexadecimal digits. Its
 * files lie in a private directory that is mounted for that process only. The probe needs a CUDA context, so it uses
 * some hundred megabytes of the first GPU for a second. Null if the probe reports no limits.
 */
export async function tryEnforcement(libraries: string, uuids: readonly string[]): Promise<LimitedReport | null> {
  const base = await mkdtemp(join(tmpdir(), 'gpu-manager-doctor-'));
  const directories = new SliceDirectories(base);
  try {
    await directories.make(ALLOCATION);
    const devices = uuids.map((uuid) => ({
      uuid: `GPU-${dashed(uuid)}`,
      pciBusId: '',
      memoryBytes: TRIAL_BYTES,
      share: 100,
      softLimit: null,
    }));
    await writeFile(directories.limitsPathOf(ALLOCATION), encodeLimits({ allocation: ALLOCATION, devices }));
    return (await runProbe(libraries, directories.pathOf(ALLOCATION))).limited;
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

function dashed(uuid: string): string {
  return uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, '$1-$2-$3-$4-$5');
}
