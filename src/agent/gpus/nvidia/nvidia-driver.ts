import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { systemClock, type Clock } from '../../../host/clock.js';
import { Listeners } from '../../../host/listeners.js';
import {
  DriverError,
  type Driver,
  type DriverEvent,
  type DriverListener,
  type GroupLimiter,
  type Inventory,
  type MigPartitioner,
} from '../driver.js';
import { CallGate } from './call-gate.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import { limitsOf, setLimits } from './group-limits.js';
import { memory, type MemoryInfo } from './identity.js';
import { kernelDriver, type KernelDriver } from './kernel-driver.js';
import { LIBRARY_PATHS, Library } from './library.js';
import { energy, power, temperature, utilization } from './load.js';
import { askPartition, createInstance, destroyInstance } from './mig-partition.js';
import { Nvml } from './nvml.js';
import { askProcesses } from './processes.js';
import { closeSession, openSession, surveyMachine, type MigUse, type Session } from './session.js';
import { Watch } from './watch.js';

export interface NvidiaOptions {
  /** The value of `--driver` if it is not `nvidia`. */
  readonly name?: string;
  /** Paths of libnvidia-ml, tried in this order. */
  readonly libraryPaths?: readonly string[];
  readonly kernel?: KernelDriver;
  /** Absent: GPUs that MIG divides are excluded. */
  readonly mig?: MigUse;
  readonly clock?: Clock;
  /** Called once for each thing that this driver or a GPU does not support, and for actions on missing modules. */
  readonly report?: (note: string) => void;
  /** A call that takes longer fails. */
  readonly callTimeoutMs?: number;
  /** Polling interval of GPU events while a listener exists. */
  readonly tickMs?: number;
}

/** Number of threads of Node's pool that calls into the driver may use at once. */
const CALL_LIMIT = 2;
/**
 * Every tick fetches reported errors and queries the GPUs that report none. Every this many ticks, all GPUs are
 * queried and counted. After an outage, the driver is opened again at this interval.
 */
const TICKS_PER_ROUND = 5;
/** Utilisation by process covers this last period. */
const SHARE_WINDOW_MS = 1000;

const NO_GROUP_LIMITS = 'the driver keeps no memory limits of control groups here; 615 and later do';

interface Connection {
  readonly session: Session;
  readonly watch: Watch;
}

/**
 * NVIDIA GPUs through NVML. The driver is opened at the first call, and again after an outage; constant facts are read
 * once per session. While a listener exists, errors are read in every tick (once per second by default), so that a
 * fault is detected within a second without a thread that waits in the driver.
 */
export class NvidiaDriver implements Driver {
  readonly name: string;
  readonly partitioner: MigPartitioner = {
    instances: (gpuUuid) =>
      this.#onGpu(gpuUuid, async ({ session }, gpu) => {
        const partition = await askPartition(session.nvml, gpu);
        if (partition === null)
          throw new DriverError('failed', `${gpu.target}: the driver does not list its MIG instances`);
        return partition.found;
      }),
    create: (place) =>
      this.#divide(
        place.gpuUuid,
        ({ session }, gpu) => createInstance(session.nvml, gpu, place),
        () => true,
      ),
    destroy: (place, uuid) =>
      this.#divide(
        place.gpuUuid,
        ({ session }, gpu) => destroyInstance(session.nvml, gpu, place, uuid),
        (result) => result === 'destroyed',
      ),
  };
  readonly groupLimiter: GroupLimiter = {
    problem: (uuid, group) =>
      this.#onGpu(uuid, async ({ session: { nvml } }, { target, handle, details }) => {
        if (details.instance !== undefined) return 'the driver keeps no memory limits on MIG instances';
        const answer = await nvml.ask(target, limitsOf(handle, group));
        return answer === null ? NO_GROUP_LIMITS : null;
      }),
    set: (uuid, group, limits) =>
      this.#onGpu(uuid, async ({ session: { nvml } }, { target, handle }) => {
        const answer = await nvml.ask(target, setLimits(handle, group, limits));
        return answer ?? { refused: NO_GROUP_LIMITS };
      }),
    get: (uuid, group) =>
      this.#onGpu(
        uuid,
        async ({ session: { nvml } }, { target, handle }) =>
          (await nvml.ask(target, limitsOf(handle, group))) ?? 'none',
      ),
  };
  readonly #paths: readonly string[];
  readonly #kernel: KernelDriver;
  readonly #mig: MigUse;
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #report: (note: string) => void;
  readonly #gate: CallGate;
  readonly #listeners = new Listeners<DriverEvent>();
  readonly #notes = new Set<string>();
  #library: Library | null = null;
  #connection: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  #outage = false;
  /**
   * Fingerprint of the last connection: a different one at the next connection means that GPUs were added or removed.
   */
  #known: string | null = null;
  #stopTicking: (() => void) | null = null;
  #ticking: Promise<void> | null = null;
  #ticks = 0;
  /** Number of running changes of MIG instances. */
  #dividing = 0;
  #closed = false;

  constructor(options: NvidiaOptions = {}) {
    this.name = options.name ?? 'nvidia';
    this.#paths = options.libraryPaths ?? LIBRARY_PATHS;
    this.#kernel = options.kernel ?? kernelDriver();
    this.#mig = options.mig ?? 'excluded';
    this.#clock = options.clock ?? systemClock;
    this.#tickMs = options.tickMs ?? 1_000;
    this.#report = options.report ?? (() => undefined);
    this.#gate = new CallGate({ clock: this.#clock, timeoutMs: options.callTimeoutMs ?? 5000, limit: CALL_LIMIT });
  }

  async inventory(): Promise<Inventory> {
    const { session } = await this.#connected();
    return { ...session.inventory, notes: [...session.inventory.notes, ...this.#notes] };
  }

  async sample(uuid: string): Promise<GpuSample> {
    return this.#onGpu(uuid, async ({ session: { nvml } }, { target, handle, board }) => {
      const [memoryInfo, load, heat, watts] = nvml.askAll<[MemoryInfo, number, number, number]>(target, [
        memory(handle),
        utilization(handle),
        temperature(board),
        power(board),
      ]);
      const usedMemoryBytes = (await memoryInfo)?.usedBytes ?? null;
      return {
        atMs: this.#clock.now(),
        usedMemoryBytes,
        utilizationPercent: await optional(load),
        temperatureCelsius: await optional(heat),
        powerMilliwatts: await optional(watts),
      };
    });
  }

  async processes(uuid: string): Promise<readonly GpuProcess[]> {
    return this.#onGpu(uuid, ({ session }, gpu) =>
      askProcesses(session.nvml, gpu, this.#clock.now() - SHARE_WINDOW_MS),
    );
  }

  energyMillijoules(uuid: string): Promise<number | null> {
    return this.#onGpu(uuid, ({ session }, { target, board }) => optional(session.nvml.ask(target, energy(board))));
  }

  subscribe(listener: DriverListener): () => void {
    const remove = this.#listeners.add(listener);
    this.#stopTicking ??= this.#clock.every(this.#tickMs, () => {
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = null;
      });
    });
    return () => {
      remove();
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#stop();
    await this.#ticking;
    await this.#connecting?.catch(() => undefined);
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await closeSession(connection.session);
    const { hanging } = this.#gate;
    if (hanging.length > 0)
      throw new DriverError(
        'timeout',
        `calls to ${hanging.join(' and ')} have not returned: Node cannot end by itself`,
      );
  }

  #stop(): void {
    this.#stopTicking?.();
    this.#stopTicking = null;
  }

  /** The connection to the driver; creates one if there is none. */
  async #connected(): Promise<Connection> {
    if (this.#closed) throw new DriverError('unreachable', 'the driver is closed');
    if (this.#connection !== null) return this.#connection;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Connection> {
    try {
      const done = await this.#kernel.ensureLoaded();
      if (done !== null) this.#note(done);
      this.#library ??= Library.open(this.#paths);
      const nvml = new Nvml(this.#library, this.#gate, (note) => this.#note(note));
      const session = await openSession(nvml, this.#kernel, this.#mig);
      const connection = { session, watch: new Watch(session) };
      this.#connection = connection;
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    }
    return this.#reportConnection(this.#connection);
  }

  /** Notifies the listeners of the GPUs that a new connection shows. */
  #reportConnection(connection: Connection): Connection {
    const { fingerprint } = connection.session;
    const changed = this.#known !== null && this.#known !== fingerprint;
    this.#known = fingerprint;
    if (this.#outage) this.#emit({ kind: 'reachable' });
    this.#outage = false;
    if (changed) this.#emit({ kind: 'changed' });
    return connection;
  }

  #fail(error: Error): void {
    if (!this.#outage) this.#emit({ kind: 'unreachable', reason: error.message });
    this.#outage = true;
  }

  /** Closes a connection: the next call creates a new one. */
  async #disconnect(connection: Connection): Promise<void> {
    if (this.#connection !== connection) return;
    this.#connection = null;
    await closeSession(connection.session);
  }

  /**
   * Changes the MIG instances of a GPU, and reads the machine again. Surveys wait meanwhile: they would find half of
   * the change.
   */
  async #divide<T>(
    gpuUuid: string,
    change: (connection: Connection, gpu: NvmlGpu) => Promise<T>,
    isChanged: (result: T) => boolean,
  ): Promise<T> {
    this.#dividing += 1;
    try {
      const result = await this.#onGpu(gpuUuid, change);
      if (isChanged(result)) await this.#renew();
      return result;
    } finally {
      this.#dividing -= 1;
    }
  }

  /** Reads the machine again. NVML stays initialised meanwhile, so that other calls go on. */
  async #renew(): Promise<void> {
    // A connection that is being made may have read the machine too early.
    await this.#connecting?.catch(() => undefined);
    const before = this.#connection;
    this.#connection = null;
    // The listeners hear of a failure, and later calls and ticks connect again.
    await this.#connected().catch(() => undefined);
    // A running tick uses the events of the earlier session.
    await this.#ticking;
    if (before !== null) await closeSession(before.session);
  }

  async #onGpu<T>(uuid: string, work: (connection: Connection, gpu: NvmlGpu) => Promise<T>): Promise<T> {
    const connection = await this.#connected();
    const gpu = connection.session.gpus.get(uuid);
    if (gpu === undefined) throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
    try {
      return await work(connection, gpu);
    } catch (error) {
      if (connection === this.#connection) {
        this.#emit(...connection.watch.missed(uuid, error));
        if (isOutage(error)) await this.#lose(connection, error);
      }
      throw error;
    }
  }

  async #lose(connection: Connection, error: DriverError): Promise<void> {
    this.#fail(error);
    await this.#disconnect(connection);
  }

  async #tick(): Promise<void> {
    const tick = this.#ticks++;
    if (this.#connection === null && this.#outage && tick % TICKS_PER_ROUND !== 0) return;
    let connection: Connection;
    try {
      connection = await this.#connected();
    } catch {
      // The listeners have been notified already; the next ticks try again.
      return;
    }
    try {
      this.#emit(...(await connection.watch.reported()));
      const { session, watch } = connection;
      const everyone = tick % TICKS_PER_ROUND === 0;
      const [news, found] = await Promise.all([
        watch.visited(everyone),
        everyone && this.#dividing === 0 ? surveyMachine(session, this.#kernel) : session.fingerprint,
      ]);
      this.#emit(...news);
      if (found !== session.fingerprint && this.#dividing === 0) {
        await this.#disconnect(connection);
        await this.#connected();
      }
    } catch (error) {
      if (error instanceof DriverError && connection === this.#connection) await this.#lose(connection, error);
    }
  }

  #emit(...events: readonly DriverEvent[]): void {
    for (const event of events) this.#listeners.emit(event);
  }

  #note(note: string): void {
    if (this.#notes.has(note)) return;
    this.#notes.add(note);
    this.#report(note);
  }
}

/** True for failures of the whole driver, false for those of one GPU. */
function isOutage(error: unknown): error is DriverError {
  return error instanceof DriverError && error.code === 'unreachable';
}
