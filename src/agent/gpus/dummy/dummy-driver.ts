import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { DriverError, type Driver, type Inventory } from '../driver.js';
import { inventoryNotes } from '../notes.js';

/** A machine without GPUs: the agent runs and registers, but has no devices. */
export class DummyDriver implements Driver {
  readonly name = 'dummy';
  readonly partitioner = null;
  readonly groupLimiter = null;

  async inventory(): Promise<Inventory> {
    return {
      driverVersion: null,
      cudaVersion: null,
      gpus: [],
      topology: { levels: [], nvlinks: [] },
      excluded: [],
      notes: inventoryNotes([], []),
    };
  }

  async sample(uuid: string): Promise<GpuSample> {
    throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
  }

  async processes(uuid: string): Promise<readonly GpuProcess[]> {
    throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
  }

  async energyMillijoules(uuid: string): Promise<number | null> {
    throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
  }

  subscribe(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {}
}
