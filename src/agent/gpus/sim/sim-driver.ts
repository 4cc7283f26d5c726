import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { levelBetween, linksBetween, topologyOfPairs } from '../../../gpu/topology/topology.js';
import { systemClock, type Clock } from '../../../host/clock.js';
import { Listeners } from '../../../host/listeners.js';
import { inventoryNotes } from '../notes.js';
import {
  DriverError,
  type Driver,
  type DriverEvent,
  type DriverListener,
  type GpuDetails,
  type Inventory,
} from '../driver.js';
import type { SimNode } from './node.js';

/** The load on a simulated GPU, which a test or a demonstration sets. */
export interface SimLoad {
  readonly utilizationPercent: number;
  readonly processes: readonly GpuProcess[];
}

const IDLE: SimLoad = { utilizationPercent: 0, processes: [] };

/**
 * GPUs simulated inside this process: the inventory of a description, with loads and faults on command. The agent gets
 * the same events as from a real driver. (Programs that call CUDA need the simulated libraries of native/sim instead.)
 */
export class SimDriver implements Driver {
  readonly name = 'sim';
  readonly partitioner = null;
  readonly groupLimiter = null;
  readonly #node: SimNode;
  readonly #clock: Clock;
  readonly #migInstances: boolean;
  readonly #listeners = new Listeners<DriverEvent>();
  readonly #loads = new Map<string, SimLoad>();
  readonly #lost = new Set<string>();
  readonly #removed = new Set<string>();
  readonly #aliveSince = new Map<string, number>();
  #outage: string | null = null;
  #closed = false;

  /** `migInstances`: true: each MIG instance counts as a separate GPU; false: GPUs that MIG divides are excluded. */
  constructor(node: SimNode, clock: Clock = systemClock, migInstances = false) {
    this.#node = node;
    this.#clock = clock;
    this.#migInstances = migInstances;
  }

  async inventory(): Promise<Inventory> {
    this.#answer();
    const positions = [...this.#node.gpus.keys()].filter((at) => !this.#removed.has(this.#uuidAt(at)));
    // As in the real driver, GPUs after a removed one get lower indexes.
    const physical = positions.map((at, index) => ({ ...(this.#node.gpus[at] as SimNode['gpus'][number]), index }));
    const divided = physical.filter(({ mig }) => mig === true);
    const instances = this.#migInstances
      ? this.#node.instances.filter(({ instance }) => divided.some(({ uuid }) => uuid === instance?.parentUuid))
      : [];
    const gpus: readonly GpuDetails[] = [
      ...physical.filter(({ mig }) => mig !== true),
      ...instances.map((instance, at) => ({ ...instance, index: physical.length + at })),
    ];
    const excluded = divided.map((gpu) => ({
      gpu,
      reason: this.#migInstances ? 'its MIG instances are offered' : 'it is partitioned into MIG instances',
    }));
    return {
      driverVersion: this.#node.driverVersion,
      cudaVersion: this.#node.cudaVersion,
      gpus,
      topology: this.#topologyOf(gpus),
      excluded,
      notes: inventoryNotes(gpus, excluded),
    };
  }

  #topologyOf(gpus: readonly GpuDetails[]) {
    const { topology } = this.#node;
    const places = gpus.map(({ uuid, instance }) =>
      this.#node.gpus.findIndex((gpu) => gpu.uuid === (instance?.parentUuid ?? uuid)),
    );
    return topologyOfPairs(gpus.length, (a, b) => {
      const [x, y] = [places[a] as number, places[b] as number];
      if (x === y) return { level: 'PIX', nvlinks: 0 };
      const isPart = [a, b].some((at) => gpus[at]?.instance !== undefined);
      return { level: levelBetween(topology, x, y), nvlinks: isPart ? 0 : linksBetween(topology, x, y) };
    });
  }

  async sample(uuid: string): Promise<GpuSample> {
    const load = this.#load(uuid);
    return {
      atMs: this.#clock.now(),
      utilizationPercent: load.utilizationPercent,
      usedMemoryBytes: load.processes.reduce((sum, process) => sum + (process.usedMemoryBytes ?? 0), 0),
      temperatureCelsius: null,
      powerMilliwatts: null,
    };
  }

  async processes(uuid: string): Promise<readonly GpuProcess[]> {
    return this.#load(uuid).processes;
  }

  /** One watt since 1970 or the latest reset: a simulated GPU outlives the agent. */
  async energyMillijoules(uuid: string): Promise<number | null> {
    this.#load(uuid);
    return this.#clock.now() - (this.#aliveSince.get(uuid) ?? 0);
  }

  subscribe(listener: DriverListener): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
  }

  /** Sets the load of a GPU. */
  setLoad(uuid: string, load: SimLoad): void {
    this.#load(uuid);
    this.#loads.set(uuid, load);
  }

  /** The GPU reports error `xid`. */
  raiseXid(uuid: string, xid: number): void {
    this.#load(uuid);
    for (const hit of this.#hitBy(uuid)) this.#emit({ kind: 'xid', uuid: hit, xid });
  }

  /** The GPU reports memory errors that ECC could not correct. */
  raiseEcc(uuid: string): void {
    this.#load(uuid);
    for (const hit of this.#hitBy(uuid)) this.#emit({ kind: 'ecc', uuid: hit });
  }

  /** Resets the GPU while no program has it open; an open driver gets no event. */
  reset(uuid: string): void {
    this.#load(uuid);
    this.#aliveSince.set(uuid, this.#clock.now());
  }

  /** The GPU falls off the bus: it stays in the inventory and answers no call. */
  lose(uuid: string): void {
    this.#load(uuid);
    for (const hit of this.#hitBy(uuid)) {
      this.#lost.add(hit);
      this.#emit({ kind: 'lost', uuid: hit, reason: 'fallen off the bus (simulated)' });
    }
  }

  /** A lost GPU answers again. */
  find(uuid: string): void {
    for (const hit of this.#hitBy(uuid)) if (this.#lost.delete(hit)) this.#emit({ kind: 'found', uuid: hit });
  }

  /** The GPU is taken out of the machine. */
  remove(uuid: string): void {
    this.#load(uuid);
    this.#removed.add(uuid);
    this.#emit({ kind: 'changed' });
  }

  /** A removed GPU is put back in. */
  add(uuid: string): void {
    if (this.#removed.delete(uuid)) this.#emit({ kind: 'changed' });
  }

  /** The whole driver stops answering, until `restore`. */
  breakDown(reason: string): void {
    this.#outage = reason;
    this.#emit({ kind: 'unreachable', reason });
  }

  restore(): void {
    this.#outage = null;
    this.#emit({ kind: 'reachable' });
  }

  #emit(event: DriverEvent): void {
    this.#listeners.emit(event);
  }

  /** UUIDs that an event affects: an event of a GPU affects all its MIG instances. */
  #hitBy(uuid: string): readonly string[] {
    const parts = this.#node.instances.filter(({ instance }) => instance?.parentUuid === uuid);
    return [uuid, ...parts.map((part) => part.uuid)];
  }

  #uuidAt(position: number): string {
    return (this.#node.gpus[position] as SimNode['gpus'][number]).uuid;
  }

  #answer(): void {
    if (this.#closed) throw new DriverError('unreachable', 'the simulated driver is closed');
    if (this.#outage !== null) throw new DriverError('unreachable', this.#outage);
  }

  #load(uuid: string): SimLoad {
    this.#answer();
    const gpu = [...this.#node.gpus, ...this.#node.instances].find((one) => one.uuid === uuid);
    const known = gpu !== undefined && !this.#removed.has(gpu.instance?.parentUuid ?? uuid);
    if (!known) throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
    if (this.#lost.has(uuid)) throw new DriverError('gpu-lost', `GPU ${uuid} has fallen off the bus`);
    return this.#loads.get(uuid) ?? IDLE;
  }
}
