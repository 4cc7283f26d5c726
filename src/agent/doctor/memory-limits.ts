import { hostLibraries } from '../libraries/index.js';
import type { Clock } from '../../host/clock.js';
import type { Log } from '../../host/log.js';
import { DriverError, openDriver, type DriverConfig } from '../gpus/index.js';
import { controlGroups, type ControlGroups } from '../runtimes/index.js';
import { GpuEnforcement, type MemoryEnforcement } from '../slices/index.js';
import { ok, skipped, warning, type Diagnosis } from './diagnosis.js';

export interface MemoryLimitsOptions {
  readonly config: DriverConfig & {
    readonly hostRoot: string;
    /** Absent: auto. */
    readonly memoryEnforcement?: MemoryEnforcement;
  };
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: those of this machine. */
  readonly groups?: ControlGroups;
}

/** What enforces the memory limits of containers on each GPU: the driver, or the control library alone and why. */
export async function examineMemoryLimits(options: MemoryLimitsOptions): Promise<readonly Diagnosis[]> {
  const { config, clock, log, groups = controlGroups({ pidOf: async () => null }) } = options;
  if (config.driver === 'dummy') return [skipped('memory', '--driver=dummy manages no GPU')];
  const driver = await openDriver(config, hostLibraries(config.hostRoot), clock, log);
  try {
    const inventory = await driver.inventory();
    const enforcement = new GpuEnforcement({
      limiter: driver.groupLimiter,
      enforcement: config.memoryEnforcement ?? 'auto',
      inventory: () => inventory,
      groups,
    });
    await enforcement.examine();
    return inventory.gpus.map(({ index, uuid }) => {
      const enforcer = enforcement.of(uuid);
      if (enforcer.by === 'driver')
        return ok('memory', `GPU ${index}: the driver enforces memory limits (${enforcer.backend})`);
      if (enforcer.reason === null)
        return ok('memory', `GPU ${index}: the control library enforces memory limits; drivers from 615 on can too`);
      return warning(
        'memory',
        `GPU ${index}: the control library alone enforces memory limits: ${enforcer.reason}`,
        'programs that bypass the library are reported and not held; see docs/reference/security.md',
      );
    });
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return [skipped('memory', `the driver does not answer: ${error.message}`)];
  } finally {
    // A GPU that hangs was reported already.
    await driver.close().catch(() => undefined);
  }
}
