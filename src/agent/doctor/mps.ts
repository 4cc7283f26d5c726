import { access, constants } from 'node:fs/promises';
import { fileReason } from '../../host/file-reason.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { DriverError, markSmGpus, openDriver, type DriverConfig, type SmGpus } from '../gpus/index.js';
import { hostLibraries } from '../libraries/index.js';
import { MPS_CONTROL } from '../slices/index.js';
import { failed, ok, skipped, warning, type Diagnosis } from './diagnosis.js';

export interface MpsOptions {
  readonly config: DriverConfig & {
    readonly hostRoot: string;
    /** Absent: none. */
    readonly smGpus?: SmGpus;
    readonly mpsControlPath?: string;
  };
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether containers can share the multiprocessors of the GPUs that the flags name; nothing without such flags. */
export async function examineMps({ config, clock, log }: MpsOptions): Promise<readonly Diagnosis[]> {
  const { smGpus = 'none', mpsControlPath = MPS_CONTROL } = config;
  if (smGpus === 'none' || config.driver === 'dummy') return [];
  const program = await access(mpsControlPath, constants.X_OK).then(
    () => ok('mps', `${mpsControlPath} is there`),
    (error: unknown) =>
      failed(
        'mps',
        `--mps-control: ${mpsControlPath}: ${fileReason(error)}`,
        "containers that share multiprocessors do not start; give the agent's container the driver's programs (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
      ),
  );
  const driver = await openDriver(config, hostLibraries(config.hostRoot), clock, log);
  try {
    const before = await driver.inventory();
    const { gpus, notes } = markSmGpus(before, smGpus);
    const shared = gpus.flatMap(({ index, compute }) => (compute === 'sm' ? [index] : []));
    return [
      program,
      ...notes.slice(before.notes.length).map((note) => warning('mps', note, 'see docs/reference/sharing-modes.md')),
      ...(shared.length === 0 ? [] : [ok('mps', `containers share the multiprocessors of GPU ${shared.join(', ')}`)]),
    ];
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return [program, skipped('mps', `the driver does not answer: ${error.message}`)];
  } finally {
    await driver.close().catch(() => undefined);
  }
}
