import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { wait } from '../../../host/pause.js';
import { processStat } from '../../../host/process-stat.js';
import type { GpuSource } from '../../gpus/index.js';
import type { SliceNote, SliceNotices } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { SliceDirectories } from '../slice-directory.js';
import type { Slices } from '../slices.js';
import { RESULT, type CheckpointAnswer, type Checkpoints } from './checkpoint-program.js';
import { freeGroupBytes, freeHostBytes } from './host-memory.js';
import { mib, suspendObstacles, type SeenProcess } from './obstacles.js';
import { readSuspension, removeSuspension, writeSuspension, type Suspension } from './suspension-file.js';

export interface SuspenderOptions {
  /** `--allow-suspend`. Without it containers that an earlier agent suspended are resumed, and none is suspended. */
  readonly allowed: boolean;
  /** Null if the driver of this node has no checkpoint interface that the agent can reach. */
  readonly checkpoints: Checkpoints | null;
  readonly slices: Slices;
  readonly directories: SliceDirectories;
  readonly owners: ProcessOwners;
  readonly source: GpuSource;
  readonly driverVersion: () => string | null;
  /** All memory of a GPU; null for a GPU that has left the node. */
  readonly memoryBytesOf: (gpuUuid: string) => number | null;
  readonly usersOf: ProcessOwners['usersOf'];
  /** Called when a step to or from a suspension begins or ends. */
  readonly onStep?: (slice: Slice) => void;
  readonly notices: SliceNotices;
  readonly clock: Clock;
  readonly log: Log;
}

export type Suspended =
  | { readonly ok: true; readonly bytes: number; readonly processes: number }
  | { readonly ok: false; readonly code: 'unknown' | 'impossible' | 'failed'; readonly reason: string };

type Members = Suspension['processes'];

/** How long a lock waits for submitted work. */
const WORK_MS = 10_000;
/** Processes that begin while others are locked are locked too, in at most so many rounds. */
const ROUNDS = 5;
/** How long a resume waits for room, and how often it looks. */
const ROOM_MS = 5_000;
const LOOK_MS = 200;
/** Room that a GPU must have beyond what the processes had, unless it was fuller before. */
const SPARE_BYTES = 512 * 2 ** 20;

const sum = (processes: Members): number => processes.reduce((all, { bytes }) => all + bytes, 0);
const isAlive = ({ pid, startTicks }: Members[number]): boolean => {
  const stat = processStat(pid);
  return stat !== null && stat.startTicks === startTicks && !stat.ended;
};

class Stopped extends Error {}

/**
 * Suspends and resumes whole containers, one at a time: docs/design/suspend.md has the steps. A step that fails leads
 * back to running processes, or its refusal says what is lost.
 */
export class Suspender {
  readonly #options: SuspenderOptions;
  readonly #records = new Map<string, Suspension>();
  #queue: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(options: SuspenderOptions) {
    this.#options = options;
  }

  /** The record of a container that is suspended, or in a step to or from it; null for a container that runs. */
  of(allocation: string): Suspension | null {
    const record = this.#records.get(allocation);
    return record?.processes.some(isAlive) === true ? record : null;
  }

  /** What the processes of a container need on the GPU when they come back; null for a container that runs. */
  suspendedBytes(allocation: string): number | null {
    const record = this.of(allocation);
    return record === null ? null : sum(record.processes);
  }

  suspend(allocation: string): Promise<Suspended> {
    return this.#oneAtATime(() => this.#suspend(allocation));
  }

  resume(allocation: string): Promise<Suspended> {
    return this.#oneAtATime(async () => {
      const slice = this.#options.slices.started.get(allocation);
      const record = this.of(allocation);
      if (slice === undefined || record === null)
        return { ok: false, code: 'unknown', reason: `no suspended container has allocation ${allocation}` };
      return this.#goBack(slice, record, '');
    });
  }

  /** Why a running container cannot be suspended now; empty: it can. */
  async obstacles(allocation: string): Promise<readonly string[]> {
    const slice = this.#options.slices.started.get(allocation);
    return slice === undefined ? [] : this.#obstacles(slice, await this.#processesOf(slice));
  }

  /** The container was found running: what an earlier agent began goes on, or back. */
  async recover(allocation: string): Promise<void> {
    const { directories, slices, allowed, log } = this.#options;
    let record: Suspension | null = null;
    try {
      record = await readSuspension(directories.suspensionPathOf(allocation));
    } catch (error) {
      log.error(
        { err: error, allocation, file: directories.suspensionPathOf(allocation) },
        'the record of a suspended container cannot be read; end its pod if its processes do not answer',
      );
    }
    if (record === null) return;
    this.#records.set(allocation, record);
    const found = record;
    if (allowed && record.step === 'suspended') return;
    void this.#oneAtATime(async () => {
      const slice = slices.started.get(allocation);
      return slice === undefined ? null : this.#goBack(slice, found, 'an earlier agent was interrupted');
    });
  }

  /** The container starts anew: its processes have ended. */
  async forget(allocation: string): Promise<void> {
    if (!this.#records.delete(allocation)) return;
    this.#stepped(allocation);
    await removeSuspension(this.#options.directories.suspensionPathOf(allocation));
  }

  /** Ends after the present call of the driver; records tell the next agent where to go on. */
  stop(): void {
    this.#stopped = true;
    this.#options.checkpoints?.stop();
  }

  #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#queue.then(work);
    this.#queue = mine.catch((error: unknown) => {
      if (!(error instanceof Stopped))
        this.#options.log.error({ err: error }, 'a container could not be suspended or resumed');
    });
    return mine;
  }

  async #suspend(allocation: string): Promise<Suspended> {
    const { allowed, slices, source, clock } = this.#options;
    const impossible = (reason: string): Suspended => ({ ok: false, code: 'impossible', reason });
    if (!allowed) return impossible('this node suspends no containers; start the agent with --allow-suspend');
    const slice = slices.started.get(allocation);
    if (slice === undefined)
      return { ok: false, code: 'unknown', reason: `no container runs in allocation ${allocation}` };
    if (this.of(allocation) !== null) return impossible('it is suspended already');
    const seen = await this.#processesOf(slice);
    const obstacles = await this.#obstacles(slice, seen);
    const gpuUuid = slice.spec.devices[0]?.uuid ?? '';
    const usedBytes = (await source.sample(gpuUuid)).usedMemoryBytes;
    if (usedBytes === null) obstacles.push('the driver does not tell what is used of its GPU');
    if (usedBytes === null || obstacles.length > 0) return impossible(obstacles.join('; '));
    const start: Suspension = {
      step: 'suspending',
      sinceMs: clock.now(),
      gpuUuid,
      usedBytes,
      processes: members(seen),
    };
    await this.#keep(allocation, start);
    const { record, problem } = await this.#lockAll(slice, start);
    const failure = problem ?? (await this.#checkpointAll(record.processes));
    if (failure !== null) return this.#goBack(slice, record, failure);
    await this.#keep(allocation, { ...record, step: 'suspended', sinceMs: clock.now() });
    const bytes = sum(record.processes);
    this.#tell(slice, 'Normal', 'GPUSuspended', `its GPU memory, ${mib(bytes)}, is on the host`);
    return { ok: true, bytes, processes: record.processes.length };
  }

  /** Locks all processes, also those that begin meanwhile, and looks once more for obstacles. */
  async #lockAll(
    slice: Slice,
    start: Suspension,
  ): Promise<{ readonly record: Suspension; readonly problem: string | null }> {
    const locked = new Set<number>();
    /** Processes that greeted and have not begun CUDA: they have nothing to lock, and nothing on the GPU. */
    const without = new Set<number>();
    let record = start;
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const member of record.processes.filter((process) => !locked.has(process.pid) && isAlive(process))) {
        const { pid } = member;
        const answer = await this.#call((checkpoints) => checkpoints.lock(pid, WORK_MS));
        if (answer.result === RESULT.notReady)
          return { record, problem: `the work of process ${pid} did not end within ${WORK_MS / 1_000} s` };
        if (answer.result === RESULT.notInitialized) without.add(pid);
        else if (answer.result === RESULT.success) locked.add(pid);
        else if (isAlive(member)) return { record, problem: failed('lock', pid, answer) };
      }
      const seen = await this.#processesOf(slice);
      // Sizes are as of now, when no process can allocate any more.
      record = { ...record, processes: members(seen).filter(({ pid }) => !without.has(pid)) };
      await this.#keep(slice.id, record);
      if (record.processes.some(({ pid }) => !locked.has(pid))) continue;
      const obstacles = await this.#obstacles(slice, seen);
      return { record, problem: obstacles.length === 0 ? null : obstacles.join('; ') };
    }
    return { record, problem: 'new processes began all the time' };
  }

  async #checkpointAll(processes: Members): Promise<string | null> {
    for (const member of processes) {
      const { pid, bytes } = member;
      const answer = await this.#call((checkpoints) => checkpoints.checkpoint(pid, bytes));
      if (answer.result !== RESULT.success && isAlive(member)) return failed('checkpoint', pid, answer);
    }
    return null;
  }

  /** Lets all processes run again, whatever was done to them; `because` is why, empty if that was asked for. */
  async #goBack(slice: Slice, record: Suspension, because: string): Promise<Suspended> {
    const alive = record.processes.filter(isAlive);
    const bytes = sum(alive);
    const prefix = because === '' ? '' : `${because}; `;
    await this.#keep(slice.id, { ...record, step: 'resuming' });
    const states = new Map<number, CheckpointAnswer>();
    for (const { pid } of alive) states.set(pid, await this.#call((checkpoints) => checkpoints.state(pid)));
    const away = alive.filter(({ pid }) => states.get(pid)?.state === 'checkpointed');
    const noRoom = await this.#waitForRoom(record, sum(away));
    if (noRoom !== null) {
      await this.#keep(slice.id, { ...record, step: 'suspended' });
      return { ok: false, code: 'failed', reason: `${prefix}${noRoom}; it stays suspended` };
    }
    for (const { pid, bytes: held } of away)
      states.set(pid, await this.#call((checkpoints) => checkpoints.restore(pid, held)));
    for (const { pid } of alive)
      if (states.get(pid)?.state === 'locked')
        states.set(pid, await this.#call((checkpoints) => checkpoints.unlock(pid)));
    const stuck = alive.filter((process) => isAlive(process) && !runs(states.get(process.pid)));
    if (stuck.length === 0) {
      await this.forget(slice.id);
      if (because !== '') {
        this.#tell(slice, 'Warning', 'GPUSuspendFailed', `${because}; its processes run`);
        return { ok: false, code: 'failed', reason: `${because}; its processes run` };
      }
      this.#tell(slice, 'Normal', 'GPUResumed', `its GPU memory, ${mib(bytes)}, is on the GPU again`);
      return { ok: true, bytes, processes: alive.length };
    }
    const lost = stuck.map(({ pid }) => describeStuck(pid, states.get(pid))).join('; ');
    this.#tell(slice, 'Warning', 'GPUSuspendFailed', `${prefix}${lost}`);
    return { ok: false, code: 'failed', reason: `${prefix}${lost}` };
  }

  /** Null when the GPU has room for `bytes` more: a restore without room would end the processes. */
  async #waitForRoom({ gpuUuid, usedBytes }: Suspension, bytes: number): Promise<string | null> {
    if (bytes === 0) return null;
    const { source, memoryBytesOf, clock } = this.#options;
    const most = Math.max(usedBytes, (memoryBytesOf(gpuUuid) ?? 0) - SPARE_BYTES);
    const untilMs = clock.now() + ROOM_MS;
    for (;;) {
      const used = (await source.sample(gpuUuid).catch(() => null))?.usedMemoryBytes ?? null;
      if (used !== null && used + bytes <= most) return null;
      if (clock.now() >= untilMs)
        return used === null
          ? `GPU ${gpuUuid} does not tell what is used of it`
          : `GPU ${gpuUuid} has room for ${mib(Math.max(most - used, 0))}, and ${mib(bytes)} are needed`;
      await wait(clock, LOOK_MS);
      this.#check();
    }
  }

  /** The greeted processes of a slice, and all others that the driver lists for it. */
  async #processesOf(slice: Slice): Promise<SeenProcess[]> {
    const { source, owners, clock } = this.#options;
    const lists = await Promise.all(slice.spec.devices.map(({ uuid }) => source.processes(uuid)));
    const listed = lists.flat();
    await owners.learn(
      listed.map(({ pid }) => pid),
      clock.now(),
    );
    const slots = (slice.usage.ok ? slice.usage.reader.processes() : null) ?? [];
    const greeted = [...slice.sessions].map(({ pid, startTicks, greeting }): SeenProcess => {
      const slot = slots.find((one) => one.slot === greeting.slot && one.pid === greeting.pid);
      const onGpu = listed.filter((one) => one.pid === pid);
      const bytes = onGpu.reduce<number | null>(
        (all, { usedMemoryBytes }) => (all === null || usedMemoryBytes === null ? null : all + usedMemoryBytes),
        0,
      );
      return { pid, startTicks, bytes, obstacles: slot?.obstacles ?? null };
    });
    const known = new Set(greeted.map(({ pid }) => pid));
    const others = [...new Map(listed.map((one) => [one.pid, one])).values()]
      .filter(({ pid }) => !known.has(pid) && owners.ownerOf(pid)?.allocation === slice.id)
      .map(({ pid, usedMemoryBytes }): SeenProcess => {
        return { pid, startTicks: processStat(pid)?.startTicks ?? null, bytes: usedMemoryBytes, obstacles: null };
      });
    return [...greeted, ...others];
  }

  async #obstacles(slice: Slice, processes: readonly SeenProcess[]): Promise<string[]> {
    const { checkpoints, driverVersion } = this.#options;
    const groups = await Promise.all(
      processes.map(({ pid }) => (pid === null ? Promise.resolve(null) : freeGroupBytes(pid))),
    );
    const reasons = suspendObstacles({
      architecture: process.arch,
      driverVersion: driverVersion(),
      unenforced: slice.unenforced,
      gpuUuids: slice.spec.devices.map(({ uuid }) => uuid),
      processes,
      hostBytes: await freeHostBytes(),
      groupBytes: groups.reduce<number | null>(
        (least, free) => (least === null || free === null ? null : Math.min(least, free)),
        Infinity,
      ),
    });
    return checkpoints === null ? ['the agent finds no libcuda.so.1 on this node', ...reasons] : reasons;
  }

  async #call(call: (checkpoints: Checkpoints) => Promise<CheckpointAnswer>): Promise<CheckpointAnswer> {
    this.#check();
    const { checkpoints, log } = this.#options;
    if (checkpoints === null) return { result: null, state: null };
    try {
      return await call(checkpoints);
    } catch (error) {
      log.error({ err: error }, 'a call of the checkpoint interface failed');
      return { result: null, state: null };
    }
  }

  #check(): void {
    if (this.#stopped) throw new Stopped('the agent stops');
  }

  async #keep(allocation: string, record: Suspension): Promise<void> {
    this.#check();
    await writeSuspension(this.#options.directories.suspensionPathOf(allocation), record);
    this.#records.set(allocation, record);
    this.#stepped(allocation);
  }

  #stepped(allocation: string): void {
    const slice = this.#options.slices.started.get(allocation);
    if (slice !== undefined) this.#options.onStep?.(slice);
  }

  #tell(slice: Slice, type: SliceNote['type'], reason: string, message: string): void {
    const { usersOf, notices, log } = this.#options;
    log.info({ allocation: slice.id, owner: slice.spec.owner, reason }, message);
    for (const user of usersOf(slice.spec))
      notices.note(user, { type, reason, message: `${user.container}: ${message}` });
  }
}

/** Only processes that the driver can name: the others were found to be obstacles. */
function members(seen: readonly SeenProcess[]): Members {
  return seen.flatMap(({ pid, startTicks, bytes }) =>
    pid === null || startTicks === null ? [] : [{ pid, startTicks, bytes: bytes ?? 0 }],
  );
}

/** A process without CUDA has no state, and needs none. */
function runs(answer: CheckpointAnswer | undefined): boolean {
  return answer?.state === 'running' || answer?.result === RESULT.notInitialized;
}

function failed(what: string, pid: number, { result, state }: CheckpointAnswer): string {
  if (result === null) return `process ${pid} did not answer the ${what}: it may be frozen`;
  return `the ${what} of process ${pid} failed with CUDA error ${result}${state === 'failed' ? ', and the process is lost' : ''}`;
}

function describeStuck(pid: number, answer: CheckpointAnswer | undefined): string {
  if (answer?.state === 'failed') return `process ${pid} is lost: end its pod`;
  if (answer?.state === 'checkpointed' && answer.result === RESULT.outOfMemory)
    return `process ${pid} found no room on the GPU and cannot be restored any more: end its pod`;
  return `process ${pid} does not run (state ${answer?.state ?? 'unknown'}, CUDA error ${answer?.result ?? 'none'}); try to resume it again`;
}
