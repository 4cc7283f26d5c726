import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { subTopology } from '../../../gpu/topology/topology.js';
import { systemClock, type Clock } from '../../../host/clock.js';
import { inventoryNotes } from '../notes.js';
import { DriverError, type Driver, type DriverEvent, type DriverListener, type Inventory } from '../driver.js';
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
  readonly #node: SimNode;
  readonly #clock: Clock;
  readonly #listeners = new Set<DriverListener>();
  readonly #loads = new Map<string, SimLoad>();
  readonly #lost = new Set<string>();
  readonly #removed = new Set<string>();
  readonly #aliveSince = new Map<string, number>();
  #outage: string | null = null;
  #closed = false;

  constructor(node: SimNode, clock: Clock = systemClock) {
    this.#node = node;
    this.#clock = clock;
  }

  async inventory(): Promise<Inventory> {
    this.#answer();
    const positions = [...this.#node.gpus.keys()].filter((at) => !this.#removed.has(this.#uuidAt(at)));
    // As in the real driver, GPUs after a removed one get lower indexes.
    const gpus = positions.map((at, index) => ({ ...(this.#node.gpus[at] as SimNode['gpus'][number]), index }));
    return {
      driverVersion: this.#node.driverVersion,
      cudaVersion: this.#node.cudaVersion,
      gpus,
      topology: subTopology(this.#node.topology, positions),
      excluded: [],
      notes: inventoryNotes(gpus, []),
    };
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
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
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
    this.#emit({ kind: 'xid', uuid, xid });
  }

  /** The GPU reports memory errors that ECC could not correct. */
  raiseEcc(uuid: string): void {
    this.#load(uuid);
    this.#emit({ kind: 'ecc', uuid });
  }

  /** Resets the GPU while no program has it open; an open driver gets no event. */
  reset(uuid: string): void {
    this.#load(uuid);
    this.#aliveSince.set(uuid, this.#clock.now());
  }

  /** The GPU falls off the bus: it stays in the inventory and answers no call. */
  lose(uuid: string): void {
    this.#load(uuid);
    this.#lost.add(uuid);
    this.#emit({ kind: 'lost', uuid, reason: 'fallen off the bus (simulated)' });
  }

  /** A lost GPU answers again. */
  find(uuid: string): void {
    if (this.#lost.delete(uuid)) this.#emit({ kind: 'found', uuid });
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
    for (const listener of [...this.#listeners]) listener(event);
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
    const known = this.#node.gpus.some((gpu) => gpu.uuid === uuid) && !this.#removed.has(uuid);
    if (!known) throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
    if (this.#lost.has(uuid)) throw new DriverError('gpu-lost', `GPU ${uuid} has fallen off the bus`);
    return this.#loads.get(uuid) ?? IDLE;
  }
}
