import type { Greeting } from '../../abi/greeting.js';
import type { DeviceLimit, NewDeviceLimits, NewLimits } from '../../abi/limits-file.js';
import { parseDriverVersion, type VcudaConfig } from '../../abi/vcuda-config.js';
import { sameLimits } from './live-limits.js';
import type { Clock } from '../../host/clock.js';
import { LimitedLog } from '../../host/limited-log.js';
import type { Log } from '../../host/log.js';
import type { PeerCredentials } from '../../host/peer-credentials.js';
import { CompatRegistry } from './compat-registry.js';
import { DepartedProcesses } from './departed.js';
import { LimitsWriter } from './limits-writer.js';
import type { ContainerKnowledge, SliceOwner } from './ports.js';
import type { RegistrationPace } from './registration-pace.js';
import { newSession, type Session } from './session.js';
import type { SliceDirectories } from './slice-directory.js';
import { SliceSocket, type ConnectionBudget, type SocketLimits, type SocketRefusals } from './slice-socket.js';
import { UsageReader, type UsageOpened } from './usage-reader.js';

/** One allocation as the agent's ledger has it: what its container was given. */
export interface SliceSpec {
  readonly allocation: string;
  readonly owner: SliceOwner;
  readonly devices: readonly NewDeviceLimits[];
}

/** The limits to begin with, by position of the GPU; what was given, or less. */
export type HeldDevices = readonly DeviceLimit[];

export interface SliceOptions {
  readonly directories: SliceDirectories;
  readonly knowledge: ContainerKnowledge;
  readonly budget: ConnectionBudget;
  readonly pace: RegistrationPace;
  /** Of the driver on this node, `580.95.05`; null where it is not known. */
  readonly driverVersion: () => string | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly socketLimits?: SocketLimits;
}

/**
 * How often a restored slice is published anew, a maintenance apart: processes that greeted the agent before this one
 * sample then whether they still have a connection, but not twice within a second. The first time may fall into that
 * second, the third cannot.
 */
const SIGNS_OF_LIFE = 3;

/** Told of processes that came and went. */
export interface SessionListener {
  joined(session: Session): void;
  left(session: Session): void;
}

/**
 * One started allocation: its limits, its usage file, its socket and the processes that came by it. Opened before its
 * container starts, and again after a restart of the agent; each of its parts exists once for as long as it lives.
 */
export class Slice {
  readonly id: string;
  readonly #options: SliceOptions;
  readonly #listener: SessionListener;
  readonly #socket: SliceSocket;
  readonly #compat: CompatRegistry;
  readonly #sessions = new Set<Session>();
  readonly #departed = new DepartedProcesses();
  #spec: SliceSpec;
  #limits: LimitsWriter;
  #usage: UsageOpened;
  #signsOfLife = 0;

  private constructor(spec: SliceSpec, limits: LimitsWriter, options: SliceOptions, listener: SessionListener) {
    const { directories, clock } = options;
    const log = new LimitedLog(options.log, clock);
    this.id = spec.allocation;
    this.#spec = spec;
    this.#limits = limits;
    this.#options = options;
    this.#listener = listener;
    this.#usage = UsageReader.open(directories.usagePathOf(this.id));
    this.#compat = new CompatRegistry({
      sliceDirectory: directories.pathOf(this.id),
      knowledge: options.knowledge,
      config: () => this.#vcudaConfig(),
      greeted: () => [...this.#sessions].flatMap(({ pid }) => pid ?? []),
      turn: () => options.pace.turn(),
      onFailure: (error) => log.error({ err: error, allocation: this.id }, 'a registration failed'),
    });
    this.#socket = new SliceSocket({
      path: directories.socketPathOf(this.id),
      handlers: {
        greeted: (peer, greeting) => this.#greet(peer, greeting),
        service: (peer) => this.#compat.service(peer),
      },
      budget: options.budget,
      clock,
      log,
      ...(options.socketLimits === undefined ? {} : { limits: options.socketLimits }),
    });
  }

  /** For a container that is about to start: new limits, an empty usage file, an open socket. */
  static async start(
    spec: SliceSpec,
    held: HeldDevices,
    options: SliceOptions,
    listener: SessionListener,
  ): Promise<Slice> {
    await options.directories.make(spec.allocation, true);
    await options.directories.removeContainers(spec.allocation);
    const limits = await LimitsWriter.create(options.directories.limitsPathOf(spec.allocation), newLimits(spec, held));
    const slice = new Slice(spec, limits, options, listener);
    await slice.#listen();
    return slice;
  }

  /** For a running container: existing files stay, missing files are created. */
  static async restore(
    spec: SliceSpec,
    held: HeldDevices,
    options: SliceOptions,
    listener: SessionListener,
  ): Promise<Slice> {
    await options.directories.make(spec.allocation);
    const path = options.directories.limitsPathOf(spec.allocation);
    let limits = LimitsWriter.open(path);
    if (
      limits?.lists(
        spec.allocation,
        spec.devices.map(({ uuid }) => uuid),
      ) !== true
    ) {
      limits?.close();
      limits = await LimitsWriter.create(path, newLimits(spec, held));
    }
    const slice = new Slice(spec, limits, options, listener);
    await slice.#listen();
    slice.#signsOfLife = SIGNS_OF_LIFE;
    slice.#showLife();
    await slice.#compat.restore();
    return slice;
  }

  /**
   * The same allocation, whose container is about to start once more: its processes are gone, its socket stays as it
   * is.
   */
  async restart(spec: SliceSpec, held: HeldDevices): Promise<void> {
    const { directories } = this.#options;
    await this.#compat.clear();
    this.#departed.clear();
    await directories.removeContainers(this.id);
    await directories.make(this.id, true);
    const limits = await LimitsWriter.create(directories.limitsPathOf(this.id), newLimits(spec, held));
    this.#limits.close();
    this.#limits = limits;
    this.#spec = spec;
    if (this.#usage.ok) this.#usage.reader.close();
    this.#usage = UsageReader.open(directories.usagePathOf(this.id));
    await this.#listen();
  }

  get spec(): SliceSpec {
    return this.#spec;
  }

  get limits(): LimitsWriter {
    return this.#limits;
  }

  /** Changes the limits of the running container. */
  resize(held: HeldDevices): void {
    this.#limits.publish(
      this.#limits.live.map((live, index) => {
        const limit = held[index];
        return limit === undefined || sameLimits([live], [limit])
          ? live
          : { ...live, ...limit, generation: live.generation + 1 };
      }),
    );
  }

  /** The usage file, or why it cannot be read. */
  get usage(): UsageOpened {
    return this.#usage;
  }

  /** Tries once more where it could not be opened. */
  reopenUsage(): UsageOpened {
    if (!this.#usage.ok) this.#usage = UsageReader.open(this.#options.directories.usagePathOf(this.id));
    return this.#usage;
  }

  /** Cuts the usage file back to its size; says what was found where it had grown. */
  cutUsage(): string | null {
    return this.#usage.ok ? this.#usage.reader.cut() : null;
  }

  /** Bytes that its living processes hold on the i-th GPU by their own account; null when that cannot be read. */
  held(index: number): number | null {
    if (!this.#usage.ok) return null;
    return this.#usage.reader.held(index, this.#deadSlots(this.#usage.reader));
  }

  /** The same, of the processes that were there when `held` was last called. */
  heldByKnown(index: number): number | null {
    return this.#usage.ok ? this.#usage.reader.heldByKnown(index, this.#deadSlots(this.#usage.reader)) : null;
  }

  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /** What its socket turned away. */
  get refusals(): SocketRefusals {
    return this.#socket.refusals;
  }

  /** True when there is something for `maintain` to do. */
  get needsMaintenance(): boolean {
    return this.#compat.inUse || !this.#socket.open || this.#signsOfLife > 0;
  }

  /**
   * Brings what the original's library reads up to date, and opens the socket where that failed before. To be called
   * once a second.
   */
  async maintain(): Promise<void> {
    if (!this.#socket.open) await this.#listen();
    this.#showLife();
    if (this.#compat.inUse) await this.#compat.refresh();
  }

  /** Ends connections and lets go of the files; they stay where they are. */
  async close(): Promise<void> {
    await this.#socket.stop();
    await this.#compat.clear();
    this.#limits.close();
    if (this.#usage.ok) this.#usage.reader.close();
  }

  #deadSlots(reader: UsageReader): ReadonlySet<number> {
    return this.#departed.deadSlots(() => reader.processes() ?? []);
  }

  /** Says nothing new. */
  #showLife(): void {
    if (this.#signsOfLife === 0 || !this.#socket.open) return;
    this.#signsOfLife -= 1;
    this.#limits.publish(this.#limits.live);
  }

  #greet(peer: PeerCredentials, greeting: Greeting): () => void {
    const session = newSession(this.id, peer, greeting);
    this.#sessions.add(session);
    this.#listener.joined(session);
    return () => {
      this.#sessions.delete(session);
      this.#departed.add(session);
      this.#listener.left(session);
    };
  }

  /** The library keeps its limits without a socket, so a socket that cannot be opened now holds nothing up. */
  async #listen(): Promise<void> {
    try {
      await this.#socket.start();
    } catch (error) {
      this.#options.log.error(
        { err: error, allocation: this.id },
        'the socket of a container could not be opened; retrying',
      );
    }
  }

  #vcudaConfig(): VcudaConfig {
    const live = this.#limits.live;
    return {
      podUid: this.#spec.owner.podUid,
      containerName: this.#spec.owner.container,
      busId: '',
      gpuMemoryBytes: live.reduce((sum, device) => sum + (device.memoryBytes ?? 0), 0),
      cores: live.reduce((sum, device) => sum + device.share, 0),
      softLimit: live[0]?.softLimit ?? null,
      driverVersion: parseDriverVersion(this.#options.driverVersion() ?? ''),
    };
  }
}

function newLimits(spec: SliceSpec, held: HeldDevices): NewLimits {
  return { allocation: spec.allocation, devices: spec.devices.map((device, index) => ({ ...device, ...held[index] })) };
}
