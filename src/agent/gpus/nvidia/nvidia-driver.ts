import type { GpuProcess, GpuSample } from '../../../gpu/sample.js';
import { systemClock, type Clock } from '../../../host/clock.js';
import { DriverError, type Driver, type DriverEvent, type DriverListener, type Inventory } from '../driver.js';
import { CallGate } from './call-gate.js';
import { optional, type NvmlGpu } from './nvidia-gpu.js';
import { memory } from './identity.js';
import { kernelDriver, type KernelDriver } from './kernel-driver.js';
import { LIBRARY_PATHS, Library } from './library.js';
import { energy, power, temperature, utilization } from './load.js';
import { Nvml } from './nvml.js';
import { askProcesses } from './processes.js';
import { closeSession, openSession, surveyMachine, type Session } from './session.js';
import { Watch } from './watch.js';

export interface NvidiaOptions {
  /** What `--driver` called it, where that is not `nvidia`. */
  readonly name?: string;
  /** Where to look for libnvidia-ml, in this order. */
  readonly libraryPaths?: readonly string[];
  readonly kernel?: KernelDriver;
  readonly clock?: Clock;
  /** Hears, once each, what this driver or a GPU cannot do, and what was done about missing modules. */
  readonly report?: (note: string) => void;
  /** A call that takes longer has failed. */
  readonly callTimeoutMs?: number;
  /** Polling interval of GPU events while a listener exists. */
  readonly tickMs?: number;
}

/** Threads of Node's pool that calls into the driver may hold at once. */
const CALL_LIMIT = 2;
/** Reported errors are fetched on every tick; on some of them more is done. */
const TICKS_PER_VISIT = 2;
const TICKS_PER_ROUND = 10;
const TICKS_PER_SURVEY = 10;
const TICKS_PER_RETRY = 10;
/** Utilisation by process is asked for this far back. */
const SHARE_WINDOW_MS = 1000;

interface Contact {
  readonly session: Session;
  readonly watch: Watch;
}

/**
 * NVIDIA GPUs through NVML. The driver is opened at the first call, and again after an outage; constant facts are read
 * once per session. While a listener exists, errors are read in every tick (twice per second by default), so that a
 * fault is known within a second without a thread that waits in the driver.
 */
export class NvidiaDriver implements Driver {
  readonly name: string;
  readonly #paths: readonly string[];
  readonly #kernel: KernelDriver;
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #report: (note: string) => void;
  readonly #gate: CallGate;
  readonly #listeners = new Set<DriverListener>();
  readonly #notes = new Set<string>();
  #library: Library | null = null;
  #contact: Contact | null = null;
  #connecting: Promise<Contact> | null = null;
  #outage = false;
  /** Fingerprint of the last contact: a new one with another has GPUs that came or went. */
  #known: string | null = null;
  #stopTicking: (() => void) | null = null;
  #ticking: Promise<void> | null = null;
  #ticks = 0;
  #closed = false;

  constructor(options: NvidiaOptions = {}) {
    this.name = options.name ?? 'nvidia';
    this.#paths = options.libraryPaths ?? LIBRARY_PATHS;
    this.#kernel = options.kernel ?? kernelDriver();
    this.#clock = options.clock ?? systemClock;
    this.#tickMs = options.tickMs ?? 500;
    this.#report = options.report ?? (() => undefined);
    this.#gate = new CallGate({ clock: this.#clock, timeoutMs: options.callTimeoutMs ?? 5000, limit: CALL_LIMIT });
  }

  async inventory(): Promise<Inventory> {
    const { session } = await this.#reach();
    return { ...session.inventory, notes: [...session.inventory.notes, ...this.#notes] };
  }

  async sample(uuid: string): Promise<GpuSample> {
    return this.#onGpu(uuid, async ({ session: { nvml } }, { target, handle }) => {
      const used = await nvml.ask(target, memory(handle));
      return {
        atMs: this.#clock.now(),
        utilizationPercent: await optional(nvml.ask(target, utilization(handle))),
        usedMemoryBytes: used?.usedBytes ?? null,
        temperatureCelsius: await optional(nvml.ask(target, temperature(handle))),
        powerMilliwatts: await optional(nvml.ask(target, power(handle))),
      };
    });
  }

  async processes(uuid: string): Promise<readonly GpuProcess[]> {
    return this.#onGpu(uuid, ({ session }, gpu) =>
      askProcesses(session.nvml, gpu, this.#clock.now() - SHARE_WINDOW_MS),
    );
  }

  energyMillijoules(uuid: string): Promise<number | null> {
    return this.#onGpu(uuid, ({ session }, { target, handle }) => optional(session.nvml.ask(target, energy(handle))));
  }

  subscribe(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    this.#stopTicking ??= this.#clock.every(this.#tickMs, () => {
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = null;
      });
    });
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#stop();
    await this.#ticking;
    await this.#connecting?.catch(() => undefined);
    const contact = this.#contact;
    this.#contact = null;
    if (contact !== null) await closeSession(contact.session);
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

  /** The contact with the driver, made where there is none. */
  async #reach(): Promise<Contact> {
    if (this.#closed) throw new DriverError('unreachable', 'the driver is closed');
    if (this.#contact !== null) return this.#contact;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Contact> {
    try {
      const done = await this.#kernel.ensureLoaded();
      if (done !== null) this.#note(done);
      this.#library ??= Library.open(this.#paths);
      const session = await openSession(new Nvml(this.#library, this.#gate, (note) => this.#note(note)), this.#kernel);
      const contact = { session, watch: new Watch(session) };
      this.#contact = contact;
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    }
    return this.#welcome(this.#contact);
  }

  /** Tells the listeners what a new contact means. */
  #welcome(contact: Contact): Contact {
    const { fingerprint } = contact.session;
    const changed = this.#known !== null && this.#known !== fingerprint;
    this.#known = fingerprint;
    if (this.#outage) this.#emit({ kind: 'reachable' });
    this.#outage = false;
    if (changed) this.#emit({ kind: 'changed' });
    return contact;
  }

  #fail(error: Error): void {
    if (!this.#outage) this.#emit({ kind: 'unreachable', reason: error.message });
    this.#outage = true;
  }

  /** Gives up a contact: the next call makes a new one. */
  async #leave(contact: Contact): Promise<void> {
    if (this.#contact !== contact) return;
    this.#contact = null;
    await closeSession(contact.session);
  }

  async #onGpu<T>(uuid: string, work: (contact: Contact, gpu: NvmlGpu) => Promise<T>): Promise<T> {
    const contact = await this.#reach();
    const gpu = contact.session.gpus.get(uuid);
    if (gpu === undefined) throw new DriverError('unknown-gpu', `no GPU ${uuid}`);
    try {
      return await work(contact, gpu);
    } catch (error) {
      if (contact === this.#contact) {
        this.#emit(...contact.watch.missed(uuid, error));
        if (isOutage(error)) await this.#lose(contact, error);
      }
      throw error;
    }
  }

  async #lose(contact: Contact, error: DriverError): Promise<void> {
    this.#fail(error);
    await this.#leave(contact);
  }

  async #tick(): Promise<void> {
    const tick = this.#ticks++;
    if (this.#contact === null && this.#outage && tick % TICKS_PER_RETRY !== 0) return;
    let contact: Contact;
    try {
      contact = await this.#reach();
    } catch {
      // Listeners have been told by then; the next ticks try again.
      return;
    }
    try {
      this.#emit(...(await contact.watch.reported()));
      if (tick % TICKS_PER_VISIT === 0) this.#emit(...(await contact.watch.visited(tick % TICKS_PER_ROUND === 0)));
      if (
        tick % TICKS_PER_SURVEY === 0 &&
        (await surveyMachine(contact.session, this.#kernel)) !== contact.session.fingerprint
      ) {
        await this.#leave(contact);
        await this.#reach();
      }
    } catch (error) {
      if (error instanceof DriverError && contact === this.#contact) await this.#lose(contact, error);
    }
  }

  #emit(...events: readonly DriverEvent[]): void {
    for (const event of events) for (const listener of [...this.#listeners]) listener(event);
  }

  #note(note: string): void {
    if (this.#notes.has(note)) return;
    this.#notes.add(note);
    this.#report(note);
  }
}

/** True for failures after which nothing can be expected of the driver: not those of one GPU. */
function isOutage(error: unknown): error is DriverError {
  return error instanceof DriverError && error.code === 'unreachable';
}
