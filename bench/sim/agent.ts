import { join } from 'node:path';
import type { Finding } from '../../src/agent/slices/audit/audit.js';
import { buildVgpu, type Vgpu } from '../../src/agent/slices/vgpu.js';
import type { Driver } from '../../src/agent/gpus/driver.js';
import { simLibraryDriver } from '../../src/agent/gpus/sim/library-driver.js';
import type { Priority } from '../../src/gpu/priority.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { MEMORY_OVERSUBSCRIBE_KEY } from '../../src/gpu/annotations.js';
import { SimulatedMachine } from './machine.js';

const NOBODY = { podUid: '', namespace: '', pod: '', container: '' };
/** Pods of memory class low. */
const LOW = { ...NOBODY, podUid: 'low' };
const LOW_ANNOTATIONS = new Map([[MEMORY_OVERSUBSCRIBE_KEY, 'low']]);

export interface SliceLimits {
  readonly gpu: number;
  readonly share: number;
  /** Null: hard. */
  readonly softLimit: number | null;
  /** Absent: no limit. */
  readonly memoryBytes?: number;
  /** The container may hold more than its limit, on the host: as much as the agent's factor allows. */
  readonly lowMemoryClass?: boolean;
  /** Absent: normal. */
  readonly priority?: Priority;
}

/**
 * The part of the agent that keeps limits and steers, on a simulated machine, without Kubernetes. One in each process.
 */
export class SteeringAgent {
  readonly #machine: SimulatedMachine;
  readonly #driver: Driver;
  readonly #vgpu: Vgpu;
  readonly #path: string;
  #made = 0;

  private constructor(machine: SimulatedMachine, driver: Driver, vgpu: Vgpu, path: string) {
    this.#machine = machine;
    this.#driver = driver;
    this.#vgpu = vgpu;
    this.#path = path;
  }

  static async start(machine: SimulatedMachine, memoryOversubscription = 1): Promise<SteeringAgent> {
    const driver = simLibraryDriver({
      clock: systemClock,
      report: () => undefined,
      libraryPath: SimulatedMachine.nvmlPath,
      nodePath: machine.nodePath,
      statePath: machine.statePath,
    });
    const uuids = (await driver.inventory()).gpus.map(({ uuid }) => uuid);
    const path = join(machine.directory, 'slices');
    const vgpu = buildVgpu({
      path,
      knowledge: { placeOf: async () => null, pidsOf: async () => [], sliceOf: () => null, nameOf: async () => null },
      limitAnnotations: {
        annotations: (podUid) => (podUid === LOW.podUid ? LOW_ANNOTATIONS : null),
        onAnnotations: () => () => undefined,
      },
      memoryOversubscription,
      notices: { note: () => undefined },
      evictor: { evict: () => undefined },
      auditPolicy: 'report',
      driver,
      driverVersion: () => null,
      gpus: () => uuids,
      samplePeriodMs: 1000,
      clock: systemClock,
      log: silentLog(),
    });
    await vgpu.part.start();
    return new SteeringAgent(machine, driver, vgpu, path);
  }

  /** Makes a slice; its directory is what a container sees as /etc/vcuda. */
  async slice(limits: SliceLimits): Promise<string> {
    const { gpu, share, softLimit, memoryBytes, lowMemoryClass, priority = 'normal' } = limits;
    this.#made += 1;
    const allocation = this.#made.toString(16).padStart(16, '0');
    const uuid = this.#machine.uuidOf(gpu);
    await this.#vgpu.slices.start({
      allocation,
      owner: lowMemoryClass === true ? LOW : NOBODY,
      devices: [{ uuid, pciBusId: '', memoryBytes: memoryBytes ?? null, share, softLimit, priority }],
    });
    return join(this.#path, allocation);
  }

  /** Ends the container of a slice. */
  async remove(directory: string): Promise<void> {
    await this.#vgpu.slices.remove(directory.slice(-16));
  }

  /** Gives a running container another share. */
  resize(directory: string, share: number): void {
    const slice = this.#vgpu.slices.started.get(directory.slice(-16));
    slice?.resize([{ memoryBytes: null, share, softLimit: null }]);
  }

  /** What its audit found about the container of a slice. */
  findings(directory: string): readonly Finding[] {
    const allocation = directory.slice(-16);
    return this.#vgpu.observe().find((slice) => slice.allocation === allocation)?.findings ?? [];
  }

  async stop(): Promise<void> {
    await this.#vgpu.part.stop();
    await this.#driver.close();
  }
}
