import type { Clock } from '../../../host/clock.js';
import { LimitedLog } from '../../../host/limited-log.js';
import type { Log } from '../../../host/log.js';
import { Rounds } from '../../../host/rounds.js';
import type { Driver, GpuSource } from '../../gpus/index.js';
import type { SliceNotices } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import { findBypasses, type Bypass } from './bypasses.js';
import {
  MpsError,
  namespaceOf,
  serverOf,
  type MpsClient,
  type MpsControl,
  type MpsLimits,
  type MpsState,
} from './mps-control.js';
import { MpsDaemon } from './mps-daemon.js';

export interface MpsSharingOptions {
  readonly control: MpsControl;
  readonly slices: Slices;
  readonly owners: Pick<ProcessOwners, 'learn' | 'ownerOf'>;
  readonly source: Pick<GpuSource, 'processes'>;
  readonly events: Pick<Driver, 'subscribe'>;
  /** What a slice should have now, by its allocation and its pod's annotations. */
  readonly limitsOf: (slice: Slice) => MpsLimits;
  /** When the containers of a pod are killed at last, in ms since 1970; null while it is not being deleted. */
  readonly killedAtMs: (podUid: string) => number | null;
  /** Is called when the bypasses of a slice have changed. */
  readonly onBypass: (slice: Slice) => void;
  readonly notices: SliceNotices;
  readonly clock: Clock;
  readonly log: Log;
}

/** A bypass is found within a second: this period, and two questions. */
const ROUND_MS = 700;
/** Clients of a pod that is being deleted are ended so long before its containers are killed. */
const DRAIN_MS = 2_000;
/** A client that ended so long before an error of the GPU may be its reason. */
const DEPARTED_MS = 5_000;

/** The GPU of a slice that shares multiprocessors: such a slice has one; null: it shares time. */
export function smGpuOf({ spec }: Pick<Slice, 'spec'>): string | null {
  const [device, another] = spec.devices;
  return device?.compute === 'sm' && another === undefined ? device.uuid : null;
}

/**
 * Shares of multiprocessors: a namespace of MPS for each slice on a GPU that is shared so. Runs the daemon while there
 * are such slices. Keeps nothing on disk: after a restart the agent asks the daemon what it has.
 */
export class MpsSharing {
  readonly #options: MpsSharingOptions;
  readonly #daemon: MpsDaemon;
  readonly #rounds: Rounds;
  readonly #log: LimitedLog;
  /** The limits that namespaces have, as far as this run of the agent set them. */
  readonly #set = new Map<string, MpsLimits>();
  #bypasses: readonly Bypass[] = [];
  #clients: readonly MpsClient[] = [];
  /** Clients that ended lately. */
  #departed: readonly (MpsClient & { readonly atMs: number })[] = [];
  #mayRun = true;
  /** Commands run one after another. */
  #queue: Promise<unknown> = Promise.resolve();
  #unsubscribe: () => void = () => undefined;

  constructor(options: MpsSharingOptions) {
    const { control, clock, log } = options;
    this.#options = options;
    this.#log = new LimitedLog(log, clock);
    this.#daemon = new MpsDaemon(control, clock, log);
    this.#rounds = new Rounds(clock, ROUND_MS, () => this.#round());
  }

  start(): void {
    this.#unsubscribe = this.#options.events.subscribe((event) => {
      if (event.kind === 'xid') void this.#afterError(event.uuid, event.xid);
    });
    this.#rounds.start();
  }

  /** The daemon goes on: programs of containers need it. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#rounds.stop();
    await this.#queue;
  }

  /** The folder that containers of an allocation on this GPU see. */
  folderOf(allocation: string, gpuUuid: string): string {
    return this.#options.control.folderOf(serverOf(gpuUuid), namespaceOf(allocation));
  }

  /** The container of a slice is about to start. Rejects if it would not be limited. */
  async prepare(slice: Slice): Promise<void> {
    if (smGpuOf(slice) === null) return;
    await this.#inTurn(async () => {
      this.#mayRun = true;
      await this.#settle([slice]);
    });
  }

  /** The allocation of a slice ends: its clients end, and with the last one the daemon. */
  async remove(allocation: string, gpuUuid: string): Promise<void> {
    await this.#inTurn(async () => {
      this.#set.delete(allocation);
      const { control } = this.#options;
      const state = await control.state();
      const [server, namespace] = [serverOf(gpuUuid), namespaceOf(allocation)];
      if (state?.namespaces.has(`${server}/${namespace}`) === true) await control.deleteNamespace(server, namespace);
    }).catch((error: unknown) => this.#failed(error));
    this.#rounds.now();
  }

  /** In words, the programs of a slice that are not limited; null if there are none. */
  bypassOf(allocation: string): string | null {
    const own = this.#bypasses.filter((bypass) => bypass.allocation === allocation);
    if (own.length === 0) return null;
    const list = own.slice(0, 5).map(({ name, pid, elsewhere }) => {
      const where = elsewhere === null ? 'has no connection to MPS' : `is in ${elsewhere}`;
      return `${name} (${pid}) ${where}`;
    });
    const more = own.length > list.length ? ` and ${own.length - list.length} more` : '';
    return `${list.join(', ')}${more}: it is not in the namespace of its container, so its share of the multiprocessors is not kept`;
  }

  #slices(): readonly Slice[] {
    return [...this.#options.slices.started.values()].filter((slice) => smGpuOf(slice) !== null);
  }

  #clientsOf({ id }: Slice): readonly MpsClient[] {
    return this.#clients.filter(({ namespace }) => namespace === namespaceOf(id));
  }

  /** False while containers of an earlier run of the agent may not have been found again. */
  async #isComplete(): Promise<boolean> {
    const { slices } = this.#options;
    return (await slices.list()).every((id) => slices.started.has(id));
  }

  async #round(): Promise<void> {
    await this.#inTurn(() => this.#roundNow()).catch((error: unknown) => this.#failed(error));
  }

  async #roundNow(): Promise<void> {
    const slices = this.#slices();
    if (slices.length === 0) {
      this.#bypasses = [];
      if (!this.#mayRun || !(await this.#isComplete())) return;
      await this.#daemon.quit();
      this.#set.clear();
      this.#mayRun = false;
      return;
    }
    this.#mayRun = true;
    await this.#removeOrphans(await this.#settle(slices));
    this.#see(await this.#options.control.clients());
    await this.#drain(slices);
    await this.#findBypasses(slices);
  }

  /** Brings servers, namespaces and their limits to what these slices should have. */
  async #settle(slices: readonly Slice[]): Promise<MpsState> {
    const { control, limitsOf } = this.#options;
    const { state, started } = await this.#daemon.ensure();
    if (started) this.#set.clear();
    const servers = new Set(state.servers.keys());
    for (const slice of slices) {
      const gpu = smGpuOf(slice) ?? '';
      const [server, namespace] = [serverOf(gpu), namespaceOf(slice.id)];
      if (!servers.has(server)) await control.createServer(server, gpu);
      servers.add(server);
      if (!state.namespaces.has(`${server}/${namespace}`)) {
        await control.createNamespace(server, namespace);
        this.#set.delete(slice.id);
        if (slice.sessions.size > 0 || this.#clientsOf(slice).length > 0) this.#noteLost(slice);
      }
      const limits = limitsOf(slice);
      const known = this.#set.get(slice.id);
      if (known?.percentage === limits.percentage && known.priority === limits.priority) continue;
      await control.setLimits(server, namespace, limits);
      this.#set.set(slice.id, limits);
    }
    return state;
  }

  /** Removes the namespaces of slices that ended while the agent was away. */
  async #removeOrphans({ namespaces }: MpsState): Promise<void> {
    const wanted = new Set(this.#slices().map((slice) => `${serverOf(smGpuOf(slice) ?? '')}/${namespaceOf(slice.id)}`));
    const orphans = [...namespaces].filter((path) => !wanted.has(path));
    if (orphans.length === 0 || !(await this.#isComplete())) return;
    for (const [server = '', name = ''] of orphans.map((path) => path.split('/')))
      await this.#options.control.deleteNamespace(server, name);
  }

  #see(clients: readonly MpsClient[]): void {
    const now = this.#options.clock.now();
    const ended = this.#clients.filter(({ pid }) => clients.every((client) => client.pid !== pid));
    this.#departed = [...this.#departed, ...ended.map((client) => ({ ...client, atMs: now }))].filter(
      ({ atMs }) => now - atMs <= DEPARTED_MS,
    );
    this.#clients = clients;
  }

  /** Ends the clients of pods whose containers are about to be killed: their neighbours would fail with them. */
  async #drain(slices: readonly Slice[]): Promise<void> {
    const { control, killedAtMs, clock, log } = this.#options;
    for (const slice of slices) {
      const atMs = killedAtMs(slice.spec.owner.podUid);
      if (atMs === null || clock.now() < atMs - DRAIN_MS) continue;
      for (const { pid } of this.#clientsOf(slice)) {
        await control.terminate(pid).catch((error: unknown) => this.#failed(error));
        log.info({ allocation: slice.id, owner: slice.spec.owner, pid }, 'an MPS client is ended before its container');
      }
    }
  }

  async #findBypasses(slices: readonly Slice[]): Promise<void> {
    const { source, owners, control, clock, onBypass } = this.#options;
    const found: Bypass[] = [];
    for (const gpu of new Set(slices.map((slice) => smGpuOf(slice) ?? ''))) {
      const own = slices.filter((slice) => smGpuOf(slice) === gpu);
      const clients = (): Promise<readonly MpsClient[]> => control.clients();
      const needs = { source, owners, clients, now: () => clock.now() };
      found.push(...(await findBypasses(gpu, new Set(own.map(({ id }) => id)), needs)));
    }
    const before = this.#bypasses;
    this.#bypasses = found;
    for (const slice of slices) {
      const pids = (all: readonly Bypass[]): string =>
        all.flatMap(({ allocation, pid }) => (allocation === slice.id ? [pid] : [])).join();
      if (pids(before) !== pids(found)) onBypass(slice);
    }
  }

  /** A server or the daemon ended under programs of a slice. */
  #noteLost(slice: Slice): void {
    this.#note(
      slice,
      'GPUShareLost',
      'MPS ended and was started again: programs that were running here have lost the GPU; restart them',
    );
  }

  async #afterError(gpuUuid: string, xid: number): Promise<void> {
    if (this.#slices().every((slice) => smGpuOf(slice) !== gpuUuid)) return;
    await this.#inTurn(async () => {
      this.#see(await this.#options.control.clients());
    }).catch((error: unknown) => this.#failed(error));
    this.#noteNeighbours(gpuUuid, xid);
  }

  /** Programs that share multiprocessors fail together. */
  #noteNeighbours(gpuUuid: string, xid: number): void {
    const server = serverOf(gpuUuid);
    const own = this.#slices().filter((slice) => smGpuOf(slice) === gpuUuid);
    const departed = this.#departed.filter((client) => client.server === server);
    for (const slice of own) {
      const isOwn = ({ namespace }: MpsClient): boolean => namespace === namespaceOf(slice.id);
      if (![...this.#clients, ...departed].some(isOwn)) continue;
      const other = departed.some((client) => !isOwn(client));
      const why = other
        ? 'a program of another container that shares its multiprocessors was killed while it worked'
        : 'a program that shares its multiprocessors failed';
      this.#note(
        slice,
        'GPUNeighbourLost',
        `${why} (${gpuUuid}, XID ${xid}): programs of this container there may fail with it (CUDA_ERROR_ILLEGAL_ADDRESS); restart them`,
      );
    }
  }

  #note({ id, spec }: Slice, reason: string, message: string): void {
    this.#options.log.warn({ allocation: id, owner: spec.owner, reason }, message);
    this.#options.notices.note(spec.owner, { type: 'Warning', reason, message });
  }

  #failed(error: unknown): void {
    const message = 'shares of multiprocessors could not be brought up to date; the agent retries';
    if (error instanceof MpsError) this.#log.warn({ err: error }, message);
    else this.#log.error({ err: error }, message);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(work);
    this.#queue = run.catch(() => undefined);
    return run;
  }
}
