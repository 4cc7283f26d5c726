import type { Greeting } from '../../abi/greeting.js';
import type { DeviceLimit, GivesWay, NewDeviceLimits, NewLimits } from '../../abi/limits-file.js';
import type { CallMarks } from '../../abi/usage-file.js';
import { parseDriverVersion, type VcudaConfig } from '../../abi/vcuda-config.js';
import { sameLimits } from './limits/live-limits.js';
import type { Clock } from '../../host/clock.js';
import { LimitedLog } from '../../host/limited-log.js';
import type { Log } from '../../host/log.js';
import type { PeerCredentials } from '../../host/peer-credentials.js';
import { CompatRegistry } from './compat/compat-registry.js';
import { DepartedProcesses } from './departed.js';
import { LimitsWriter } from './limits/limits-writer.js';
import type { ContainerKnowledge } from '../runtimes/index.js';
import type { SliceOwner } from './ports.js';
import type { RegistrationPace } from './compat/registration-pace.js';
import { newSession, type Session } from './session.js';
import type { SliceDirectories } from './slice-directory.js';
import { SliceSocket, type ConnectionBudget, type SocketLimits, type SocketRefusals } from './compat/slice-socket.js';
import { UsageReader, type UsageOpened } from './usage/usage-reader.js';

/** A GPU of a slice. */
export interface SliceDevice extends NewDeviceLimits {
  /** Set where the share is one of multiprocessors, by MPS; absent: of time, by the control library. */
  readonly compute?: 'sm';
}

/** An allocation of the ledger with the devices of its container. */
export interface SliceSpec {
  readonly allocation: string;
  readonly owner: SliceOwner;
  readonly devices: readonly SliceDevice[];
  /** Whether its limits are not enforced; counts when its container starts. Absent: they are. */
  readonly unenforced?: boolean;
  /** Whether the agent may suspend it; counts when its container starts. Absent: no. */
  readonly suspendable?: boolean;
  /** Whether it takes turns with others on its GPU. Absent: no. */
  readonly takesTurns?: boolean;
}

/** The first limits by position of the GPU: as allocated, or lower. */
export type HeldDevices = readonly DeviceLimit[];

export interface SliceOptions {
  readonly directories: SliceDirectories;
  readonly knowledge: ContainerKnowledge;
  readonly budget: ConnectionBudget;
  readonly pace: RegistrationPace;
  /** The driver's version on this node, such as `580.95.05`; null if unknown. */
  readonly driverVersion: () => string | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly socketLimits?: SocketLimits;
}

/**
 * How many maintenance periods a restored slice renews its publication: each renewal makes processes that greeted an
 * earlier agent check their connection, but at most once a second. The first renewal may fall into that second, the
 * third cannot.
 */
const RENEWALS = 3;

/** Is notified of processes that greet and leave. */
export interface SessionListener {
  joined(session: Session): void;
  left(session: Session): void;
}

/**
 * One started allocation: its limits, usage file, socket and greeted processes. Opened before its container starts, and
 * again after a restart of the agent. Each of its parts exists once during the life of the slice.
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
  #renewalsLeft = 0;
  #hasKeptLimits = true;

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
      limits: options.socketLimits,
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
    const uuids = spec.devices.map(({ uuid }) => uuid);
    const isKept = limits?.lists(spec.allocation, uuids) === true;
    if (limits === null || !isKept) {
      limits?.close();
      limits = await LimitsWriter.create(path, newLimits(spec, held));
    }
    const slice = new Slice(spec, limits, options, listener);
    slice.#hasKeptLimits = isKept;
    await slice.#listen();
    slice.#renewalsLeft = RENEWALS;
    slice.#renew();
    await slice.#compat.restore();
    return slice;
  }

  /**
   * For a container of the same allocation that is about to start again: its old processes have ended, its socket
   * stays.
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
    this.#hasKeptLimits = true;
    if (this.#usage.ok) this.#usage.reader.close();
    this.#usage = UsageReader.open(directories.usagePathOf(this.id));
    await this.#listen();
  }

  get spec(): SliceSpec {
    return this.#spec;
  }

  /** Replaces the allocated amounts by those of `spec`; the limits follow with the next `resize`. */
  correct(spec: SliceSpec): void {
    const known = new Map(spec.devices.map((device) => [device.uuid, device]));
    this.#spec = { ...spec, devices: this.#spec.devices.map((device) => known.get(device.uuid) ?? device) };
  }

  get limits(): LimitsWriter {
    return this.#limits;
  }

  /** Whether the limits of the running container are not enforced, only compared with its use. */
  get unenforced(): boolean {
    return this.#limits.unenforced;
  }

  /** Changes the limits of the running container. */
  resize(held: HeldDevices): void {
    this.#limits.publish(
      this.#limits.live.map((live, index) => {
        const limit = held[index];
        if (limit === undefined || sameLimits([live], [limit])) return live;
        const { driverOverheadBytes, steering, givesWay, generation } = live;
        return {
          ...limit,
          driverOverheadBytes,
          steering,
          generation: generation + 1,
          givesWay,
        };
      }),
    );
  }

  /** The usage file, or why it cannot be read. */
  get usage(): UsageOpened {
    return this.#usage;
  }

  /** Tries again to open the usage file. */
  reopenUsage(): UsageOpened {
    if (!this.#usage.ok) this.#usage = UsageReader.open(this.#options.directories.usagePathOf(this.id));
    return this.#usage;
  }

  /**
   * Cuts the usage file, and the activity file too if `withActivity`, to their proper size; returns a text about the
   * first file that had grown, else null.
   */
  cutUsage(withActivity = true): string | null {
    const activity = withActivity ? this.#options.directories.activity.cut(this.id) : null;
    return (this.#usage.ok ? this.#usage.reader.cut() : null) ?? activity;
  }

  /** Publishes, by position of the GPU, data about the slices to which this one gives way; undefined: to none. */
  tellPrecedence(precedence: readonly (GivesWay | undefined)[]): void {
    this.#limits.publish(
      this.#limits.live.map((live, at) => {
        const givesWay = precedence[at];
        const { givesWay: _before, ...others } = live;
        return givesWay === undefined ? others : { ...others, givesWay };
      }),
    );
  }

  /** Bytes that its living processes hold on the i-th GPU by their own account; null if that cannot be read. */
  held(index: number): number | null {
    if (!this.#usage.ok) return null;
    return this.#usage.reader.held(index, this.#deadSlots(this.#usage.reader));
  }

  /** The same with one read less, only for the processes that existed when `held` was last called. */
  heldByKnown(index: number): number | null {
    if (!this.#usage.ok) return null;
    return this.#usage.reader.heldByKnown(index, this.#deadSlots(this.#usage.reader));
  }

  /** Bytes that its living processes hold beyond their memory limit, on the host; null when that cannot be read. */
  hostBacked(): number | null {
    return this.#usage.ok ? this.#usage.reader.hostBacked(this.#deadSlots(this.#usage.reader)) : null;
  }

  /** What calls of its programs tell the agent; null when that cannot be read. */
  calls(): CallMarks | null {
    return this.#usage.ok ? this.#usage.reader.calls() : null;
  }

  /**
   * Whether its processes see the limits that the agent publishes. They do not if an earlier agent's file was lost
   * while they ran.
   */
  get hasKeptLimits(): boolean {
    return this.#hasKeptLimits;
  }

  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /** Counts of its socket's refusals. */
  get refusals(): SocketRefusals {
    return this.#socket.refusals;
  }

  /** True when `maintain` has work. */
  get needsMaintenance(): boolean {
    return this.#compat.inUse || !this.#socket.open || this.#renewalsLeft > 0;
  }

  /**
   * Updates the files that the original's library reads, and opens the socket if that failed before. Called once a
   * second.
   */
  async maintain(): Promise<void> {
    if (!this.#socket.open) await this.#listen();
    this.#renew();
    if (this.#compat.inUse) await this.#compat.refresh();
  }

  /** Ends connections and closes the files, which stay on disk. */
  async close(): Promise<void> {
    await this.#socket.stop();
    await this.#compat.clear();
    this.#limits.close();
    if (this.#usage.ok) this.#usage.reader.close();
  }

  #deadSlots(reader: UsageReader): ReadonlySet<number> {
    return this.#departed.deadSlots(() => reader.processes() ?? []);
  }

  /** Publishes the same limits again. */
  #renew(): void {
    if (this.#renewalsLeft === 0 || !this.#socket.open) return;
    this.#renewalsLeft -= 1;
    this.#limits.publish(this.#limits.live);
  }

  #greet(peer: PeerCredentials, greeting: Greeting): () => void {
    const session = newSession(this.id, peer, greeting);
    this.#sessions.add(session);
    this.#listener.joined(session);
    return () => {
      this.#sessions.delete(session);
      this.#departed.add(session);
      // Clears the activity of killed processes at once; it would expire a second later.
      if (this.#sessions.size === 0) this.#options.directories.activity.clear(this.id);
      this.#listener.left(session);
    };
  }

  /**
   * The control library enforces limits without a socket, so a container can start even if its socket cannot be opened
   * now.
   */
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
  return {
    allocation: spec.allocation,
    devices: spec.devices.map((device, index) => ({ ...device, ...held[index] })),
    unenforced: spec.unenforced === true,
    suspendable: spec.suspendable === true,
  };
}
