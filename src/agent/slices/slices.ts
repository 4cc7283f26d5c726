import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import type { Log } from '../../host/log.js';
import { openFileLimit } from '../../host/open-files.js';
import type { LimitPolicy } from './limits/limit-policy.js';
import type { ContainerKnowledge } from '../runtimes/index.js';
import { REGISTRATION_PACE, RegistrationPace } from './compat/registration-pace.js';
import type { Session } from './session.js';
import { Slice, type SliceOptions, type SliceSpec } from './slice.js';
import type { SliceDirectories } from './slice-directory.js';
import { ConnectionBudget, type SocketLimits } from './compat/slice-socket.js';

export interface SlicesOptions {
  readonly directories: SliceDirectories;
  readonly knowledge: ContainerKnowledge;
  readonly driverVersion: () => string | null;
  readonly policy: LimitPolicy;
  readonly clock: Clock;
  readonly log: Log;
  readonly socketLimits?: SocketLimits;
  /** Rate of registrations of all containers, shared with all other registries. */
  readonly pace?: RegistrationPace;
  /** Limit of the connections of all containers together. */
  readonly mostConnections?: number;
}

const MAX_CONNECTIONS = 16_384;
/** The part of the agent's file descriptors that connections of containers may use. */
const CONNECTION_PART = 0.5;
/** Interval in which files of the original's layout are updated. */
const MAINTENANCE_MS = 1_000;
const GREETING_MEMORY_MS = 30_000;

/**
 * The slices of this node: a directory for each allocation, and limits, socket and processes for each started one. The
 * allocator's queue runs the calls that change a slice one after another.
 */
export class Slices {
  readonly #options: SlicesOptions;
  readonly #sliceOptions: SliceOptions;
  readonly #started = new Map<string, Slice>();
  readonly #sessions = new Map<number, Session>();
  readonly #greetedAtMs = new Map<number, number>();
  readonly #listeners = new Listeners();
  #version = 0;
  #comings = 0;
  #cancel: () => void = () => undefined;
  #maintaining: Promise<void> | null = null;

  constructor(options: SlicesOptions) {
    this.#options = options;
    this.#sliceOptions = {
      ...options,
      budget: new ConnectionBudget(options.mostConnections ?? mostConnections()),
      pace: options.pace ?? new RegistrationPace(options.clock, REGISTRATION_PACE),
    };
  }

  /** The started slices, by allocation id. */
  get started(): ReadonlyMap<string, Slice> {
    return this.#started;
  }

  /** Changes whenever a slice is started, restarted or removed. */
  get version(): number {
    return this.#version;
  }

  /** Changes like `version`, and also whenever a process greets or leaves. */
  get sessionVersion(): number {
    return this.#version + this.#comings;
  }

  /** Calls `listener` after each change of `sessionVersion`, until the function that it returns is called. */
  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Whether a host process greeted at `sinceMs` or later; greetings are remembered for half a minute. */
  greetedSince(pid: number, sinceMs: number): boolean {
    return (this.#greetedAtMs.get(pid) ?? -Infinity) >= sinceMs;
  }

  /** The session of a host process that greeted over one of the sockets; the latest if its pid was reused. */
  sessionOf(pid: number): Session | null {
    return this.#sessions.get(pid) ?? null;
  }

  async open(): Promise<void> {
    await this.#options.directories.open();
    this.#cancel = this.#options.clock.every(MAINTENANCE_MS, () => {
      this.#maintaining ??= this.#maintain().finally(() => {
        this.#maintaining = null;
      });
    });
  }

  /** Closes every slice and its socket; the files that containers see stay. */
  async close(): Promise<void> {
    this.#cancel();
    await this.#maintaining;
    await Promise.all([...this.#started.values()].map((slice) => slice.close()));
    this.#started.clear();
    this.#options.directories.activity.close();
  }

  /** Creates the directory of an allocation; with `fresh`, an older directory of the same name is removed first. */
  async prepare(allocationId: string, fresh: boolean): Promise<void> {
    if (fresh) await this.remove(allocationId);
    await this.#options.directories.make(allocationId);
  }

  /** The container of an allocation is about to start, for the first time or again. */
  async start(allocated: SliceSpec): Promise<void> {
    const spec = this.#options.policy.withEnforcement(allocated);
    const known = this.#started.get(spec.allocation);
    const held = await this.#options.policy.begin(spec);
    if (known !== undefined) await known.restart(spec, held);
    else this.#started.set(spec.allocation, await Slice.start(spec, held, this.#sliceOptions, this.#sessionListener));
    this.#slicesChanged();
  }

  /** The container of an allocation was found running; does nothing if its slice is open. */
  async restore(allocated: SliceSpec): Promise<void> {
    if (this.#started.has(allocated.allocation)) return;
    const spec = this.#options.policy.withEnforcement(allocated);
    const held = await this.#options.policy.resume(spec);
    this.#started.set(spec.allocation, await Slice.restore(spec, held, this.#sliceOptions, this.#sessionListener));
    this.#slicesChanged();
  }

  /** Corrects the amounts of a running container's allocation; its GPUs and files stay. */
  correct(allocated: SliceSpec): void {
    this.#started.get(allocated.allocation)?.correct(this.#options.policy.withEnforcement(allocated));
    this.#slicesChanged();
  }

  /** The allocation has ended. */
  async remove(allocationId: string): Promise<void> {
    const slice = this.#started.get(allocationId);
    this.#started.delete(allocationId);
    this.#slicesChanged();
    await slice?.close();
    this.#options.policy.forget(allocationId);
    await this.#options.directories.remove(allocationId);
  }

  /** The ids of all allocations that have a directory. */
  list(): Promise<readonly string[]> {
    return this.#options.directories.list();
  }

  readonly #sessionListener = {
    joined: (session: Session): void => {
      this.#sessionsChanged();
      if (session.pid === null) return;
      this.#sessions.set(session.pid, session);
      // Removed first, so that the map stays in the order of times: `#maintain` drops the oldest entries.
      this.#greetedAtMs.delete(session.pid);
      this.#greetedAtMs.set(session.pid, this.#options.clock.now());
    },
    left: (session: Session): void => {
      this.#sessionsChanged();
      if (session.pid !== null && this.#sessions.get(session.pid) === session) this.#sessions.delete(session.pid);
    },
  };

  #slicesChanged(): void {
    this.#version += 1;
    this.#listeners.emit();
  }

  #sessionsChanged(): void {
    this.#comings += 1;
    this.#listeners.emit();
  }

  #forgetGreetings(): void {
    const beforeMs = this.#options.clock.now() - GREETING_MEMORY_MS;
    for (const [pid, atMs] of this.#greetedAtMs) {
      if (atMs >= beforeMs) return;
      this.#greetedAtMs.delete(pid);
    }
  }

  async #maintain(): Promise<void> {
    this.#forgetGreetings();
    for (const slice of this.#started.values()) {
      if (!slice.needsMaintenance) continue;
      try {
        await slice.maintain();
      } catch (error) {
        this.#options.log.error(
          { err: error, allocation: slice.id },
          'the compatibility files of a container could not be updated',
        );
      }
    }
  }
}

function mostConnections(): number {
  return Math.min(MAX_CONNECTIONS, Math.floor((openFileLimit() ?? 2 * MAX_CONNECTIONS) * CONNECTION_PART));
}
