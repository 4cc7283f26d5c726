import type { Clock } from '../../host/clock.js';
import { closedAtStop, type Part } from '../../host/lifecycle.js';
import type { Log } from '../../host/log.js';
import type { Driver, Inventory } from './driver.js';
import { openDriver, type DriverConfig, type HostLibraries } from './drivers.js';
import { GpuHealthFile } from './gpu-health-file.js';
import { HealthMonitor } from './health-monitor.js';
import { readHealthPolicy } from './health-policy-file.js';
import { withSmGpus, type SmGpus } from './sm-gpus.js';

export interface GpusConfig extends DriverConfig {
  /** Classes of GPU errors; null: the shipped ones. */
  readonly healthConfigPath: string | null;
  /** Directory of the health history. */
  readonly checkpointPath: string;
  /** GPUs whose multiprocessors containers share; absent: none. */
  readonly smGpus?: SmGpus;
}

export interface GpusNeeds {
  readonly config: GpusConfig;
  readonly hostLibraries: HostLibraries;
  /** Absent: the driver that the configuration names. */
  readonly driver?: Driver;
  readonly clock: Clock;
  readonly log: Log;
}

/** The GPUs of this node: their driver and their health. */
export interface Gpus {
  readonly driver: Driver;
  /** The inventory at the start of the agent; `health.inventory` is the present one. */
  readonly inventory: Inventory;
  readonly health: HealthMonitor;
  readonly healthFile: GpuHealthFile;
  /** Closes the driver. */
  readonly part: Part;
}

/** Opens the driver and restores the health of its GPUs. Rejects with a StartupError if the flags cannot work here. */
export async function openGpus(needs: GpusNeeds): Promise<Gpus> {
  const { config, clock, log } = needs;
  const policy = await readHealthPolicy(config.healthConfigPath);
  const real = needs.driver ?? (await openDriver(config, needs.hostLibraries, clock, log));
  const driver = withSmGpus(real, config.smGpus ?? 'none');
  const inventory = await driver.inventory();
  const directory = config.checkpointPath;
  const healthFile = await GpuHealthFile.open({ directory, driver, inventory, policy, clock, log });
  const health = new HealthMonitor({ driver, inventory, policy, restored: healthFile.restored, clock });
  return { driver, inventory, health, healthFile, part: closedAtStop('driver', () => driver.close()) };
}
