import type { Clock } from '../../../host/clock.js';
import type { Log } from '../../../host/log.js';
import { wait } from '../../../host/pause.js';
import type { GpuSource } from '../../gpus/index.js';
import type { SliceNote, SliceNotices } from '../ports.js';
import type { ProcessOwners } from '../process-owners.js';
import type { Slice } from '../slice.js';
import type { Slices } from '../slices.js';
import { RESULT, type CheckpointAnswer, type Checkpoints, type ProcessState } from './checkpoint-program.js';
import type { ContainerProcesses } from './container-processes.js';
import { mib, type SeenProcess } from './obstacles.js';
import type { Suspension } from './suspension-file.js';
import { nextToResume, nextToSuspend, type ProcessCall } from './suspension-plan.js';
import { isAlive, sumOf, type Member, type Suspensions } from './suspensions.js';

export interface SuspenderOptions {
  /** `--allow-suspend`. Without it containers that an earlier agent suspended are resumed, and none is suspended. */
  readonly allowed: boolean;
  /** Null if the driver of this node has no checkpoint interface that the agent can reach. */
  readonly checkpoints: Checkpoints | null;
  readonly slices: Slices;
  readonly suspensions: Suspensions;
  readonly processes: Pick<ContainerProcesses, 'of' | 'obstacles'>;
  readonly source: GpuSource;
  /** All memory of a GPU; null for a GPU that has left the node. */
  readonly memoryBytesOf: (gpuUuid: string) => number | null;
  readonly usersOf: ProcessOwners['usersOf'];
  readonly notices: SliceNotices;
  readonly clock: Clock;
  readonly log: Log;
}

/** `working`: a call of the container asked for its GPU meanwhile; `full`: the GPU has no room for a resume. */
export type Suspended =
  | { readonly ok: true; readonly bytes: number; readonly processes: number }
  | {
      readonly ok: false;
      readonly code: 'unknown' | 'impossible' | 'failed' | 'working' | 'full';
      readonly reason: string;
    };

/** How long a lock waits for submitted work. */
const WORK_MS = 10_000;
/** Processes that begin while others are locked are locked too, in at most so many rounds. */
const ROUNDS = 5;
/** How long a resume waits for room, and how often it looks. */
const ROOM_MS = 5_000;
const LOOK_MS = 200;
/** Room that a GPU must have beyond what the processes had, unless it was fuller before. */
const SPARE_BYTES = 512 * 2 ** 20;

const WORKING = 'one of its programs uses the GPU';

/** The agent stops: records tell the next one where to go on. */
export class Stopped extends Error {}

/** A process on its way: what the driver last said of it. */
interface Moved extends Member {
  readonly state: ProcessState | 'none' | null;
  readonly answer: CheckpointAnswer | null;
  readonly isStuck: boolean;
}

const moved = (member: Member, state: Moved['state']): Moved => ({ ...member, state, answer: null, isStuck: false });

/**
 * Suspends and resumes whole containers, one at a time on each GPU: docs/design/suspend.md has the steps. A step that
 * fails leads back to running processes, or its refusal says what is lost.
 */
export class Suspender {
  readonly #options: SuspenderOptions;
  /** By GPU: what ends last. */
  readonly #queues = new Map<string, Promise<void>>();
  /** Memory of the host that suspensions under way will take, by allocation. */
  readonly #coming = new Map<string, number>();
  #stopped = false;

  constructor(options: SuspenderOptions) {
    this.#options = options;
  }

  /** `held`: calls wait until someone resumes it; otherwise a call does. */
  suspend(allocation: string, by: Suspension['by'], held: boolean): Promise<Suspended> {
    return this.#queued(allocation, () => this.#suspend(allocation, by, held));
  }

  /** `waitMs`: how long to wait for room on the GPU. */
  resume(allocation: string, waitMs = ROOM_MS): Promise<Suspended> {
    return this.#queued(allocation, async () => {
      const slice = this.#options.slices.started.get(allocation);
      const record = this.#options.suspensions.of(allocation);
      if (slice === undefined || record === null)
        return { ok: false, code: 'unknown', reason: `no suspended container has allocation ${allocation}` };
      return this.#goBack(slice, record, '', waitMs);
    });
  }

  /** Why a running container cannot be suspended now; empty: it can. */
  async obstacles(allocation: string): Promise<readonly string[]> {
    const { slices, processes } = this.#options;
    const slice = slices.started.get(allocation);
    return slice === undefined ? [] : this.#obstacles(slice, await processes.of(slice));
  }

  /** The container was found running: what an earlier agent began goes on, or back. */
  async recover(allocation: string): Promise<void> {
    const { suspensions, slices, allowed, log } = this.#options;
    let record: Suspension | null = null;
    try {
      record = await suspensions.load(allocation);
    } catch (error) {
      log.error(
        { err: error, allocation },
        'the record of a suspended container cannot be read; end its pod if its processes do not answer',
      );
    }
    const slice = slices.started.get(allocation);
    if (record !== null && suspensions.of(allocation) === null) {
      // Its processes have ended, for example with the node.
      await suspensions.drop(allocation);
      record = null;
    }
    if (record === null || slice === undefined) {
      if (slice?.limits.mark !== 'waits') slice?.limits.announce('not');
      return;
    }
    const found = record;
    slice.limits.announce(record.step === 'suspended' ? 'away' : 'begins');
    if (allowed && record.step === 'suspended') return;
    const why = allowed ? 'an earlier agent was interrupted' : 'this node suspends no containers any more';
    void this.#queued(allocation, () => this.#goBack(slice, found, why, ROOM_MS)).catch(() => undefined);
  }

  /** Ends after the present call of the driver; records tell the next agent where to go on. */
  stop(): void {
    this.#stopped = true;
    this.#options.checkpoints?.stop();
  }

  /** After what is under way on the container's GPU. */
  #queued<T>(allocation: string, work: () => Promise<T>): Promise<T> {
    const gpuUuid = this.#options.slices.started.get(allocation)?.spec.devices[0]?.uuid ?? '';
    const mine = (this.#queues.get(gpuUuid) ?? Promise.resolve()).then(work);
    const queue = mine
      .catch((error: unknown) => {
        if (!(error instanceof Stopped))
          this.#options.log.error({ err: error }, 'a container could not be suspended or resumed');
      })
      .then(() => {
        if (this.#queues.get(gpuUuid) === queue) this.#queues.delete(gpuUuid);
      });
    this.#queues.set(gpuUuid, queue);
    return mine;
  }

  async #suspend(allocation: string, by: Suspension['by'], held: boolean): Promise<Suspended> {
    const { allowed, slices, suspensions, processes, source, clock } = this.#options;
    const impossible = (reason: string): Suspended => ({ ok: false, code: 'impossible', reason });
    if (!allowed) return impossible('this node suspends no containers; start the agent with --allow-suspend');
    const slice = slices.started.get(allocation);
    if (slice === undefined)
      return { ok: false, code: 'unknown', reason: `no container runs in allocation ${allocation}` };
    const present = suspensions.of(allocation);
    if (present !== null) {
      if (present.step !== 'suspended' || present.held || !held) return impossible('it is suspended already');
      await this.#keep(allocation, { ...present, by, held });
      return { ok: true, bytes: sumOf(present.processes), processes: present.processes.length };
    }
    const seen = await processes.of(slice);
    const obstacles = await this.#obstacles(slice, seen);
    const gpuUuid = slice.spec.devices[0]?.uuid ?? '';
    const usedBytes = (await source.sample(gpuUuid)).usedMemoryBytes;
    const asked = slice.calls();
    if (usedBytes === null) obstacles.push('the driver does not tell what is used of its GPU');
    if (asked === null) obstacles.push('its usage file cannot be read');
    if (usedBytes === null || asked === null || obstacles.length > 0) return impossible(obstacles.join('; '));
    const start: Suspension = {
      step: 'suspending',
      sinceMs: clock.now(),
      by,
      held,
      gpuUuid,
      usedBytes,
      // Read before calls are told to ask: what they ask from now on counts.
      asked: String(asked.asked),
      wantsSinceMs: null,
      processes: members(seen),
    };
    await this.#keep(allocation, start);
    slice.limits.announce('begins');
    this.#coming.set(allocation, sumOf(start.processes));
    const { record, problem } = await this.#moveAway(slice, start).finally(() => this.#coming.delete(allocation));
    if (problem !== null) return this.#goBack(slice, record, problem, ROOM_MS);
    await this.#keep(allocation, { ...record, step: 'suspended', sinceMs: clock.now() });
    slice.limits.announce('away');
    const bytes = sumOf(record.processes);
    this.#tell(slice, 'Normal', 'GPUSuspended', `its GPU memory, ${mib(bytes)}, is on the host`);
    return { ok: true, bytes, processes: record.processes.length };
  }

  /** Locks and checkpoints all processes, also those that begin meanwhile. */
  async #moveAway(
    slice: Slice,
    start: Suspension,
  ): Promise<{ readonly record: Suspension; readonly problem: string | null }> {
    const { processes } = this.#options;
    let record = start;
    let now: readonly Moved[] = start.processes.map((member) => moved(member, 'running'));
    let hasLooked = false;
    for (let rounds = 0; ;) {
      now = now.filter(isAlive);
      const action = nextToSuspend(now, hasLooked);
      if (action.kind === 'done') return { record, problem: null };
      if (action.kind === 'look') {
        if (rounds === ROUNDS) return { record, problem: 'new processes began all the time' };
        rounds += 1;
        if (this.#isAsked(slice, record)) return { record, problem: WORKING };
        const seen = await processes.of(slice);
        const known = new Map(now.map((one) => [one.pid, one]));
        // Sizes are as of now, when no process can allocate any more.
        now = members(seen).map((member) => {
          const before = known.get(member.pid);
          return before === undefined ? moved(member, 'running') : { ...before, ...member };
        });
        record = { ...record, processes: now.filter(({ state }) => state !== 'none').map(asMember) };
        await this.#keep(slice.id, record);
        hasLooked = now.every(({ state }) => state !== 'running');
        const obstacles = hasLooked ? await this.#obstacles(slice, seen) : [];
        if (obstacles.length > 0) return { record, problem: obstacles.join('; ') };
      } else if (action.kind !== 'room') {
        const { process, kind } = action;
        const after = await this.#move(process, kind);
        const { answer } = after;
        if (answer?.result === RESULT.notReady)
          return { record, problem: `the work of process ${process.pid} did not end within ${WORK_MS / 1_000} s` };
        if (after.isStuck && isAlive(process)) return { record, problem: failed(kind, process.pid, answer) };
        now = now.map((one) => (one.pid === process.pid ? after : one));
      }
    }
  }

  /** Lets all processes run again, whatever was done to them; `because` is why, empty if that was asked for. */
  async #goBack(slice: Slice, record: Suspension, because: string, waitMs: number): Promise<Suspended> {
    const wasAway = record.step === 'suspended';
    const bytes = sumOf(record.processes.filter(isAlive));
    const prefix = because === '' ? '' : `${because}; `;
    await this.#keep(slice.id, { ...record, step: 'resuming' });
    slice.limits.announce('begins');
    let now = record.processes.map((member) => moved(member, wasAway ? 'checkpointed' : null));
    let hasRoom = false;
    for (;;) {
      now = now.filter(isAlive);
      const action = nextToResume(now, hasRoom);
      if (action.kind === 'done' || action.kind === 'look') break;
      if (action.kind === 'room') {
        const noRoom = await this.#waitForRoom(record, action.bytes, waitMs);
        if (noRoom !== null) {
          await this.#keep(slice.id, { ...record, step: 'suspended' });
          slice.limits.announce('away');
          return { ok: false, code: 'full', reason: `${prefix}${noRoom}; it stays suspended` };
        }
        hasRoom = true;
        continue;
      }
      const after = await this.#move(action.process, action.kind);
      now = now.map((one) => (one.pid === after.pid ? after : one));
    }
    const stuck = now.filter((process) => isAlive(process) && !runs(process));
    if (stuck.length === 0) {
      await this.#options.suspensions.drop(slice.id);
      slice.limits.announce('not');
      return this.#runsAgain(slice, because, { bytes, processes: now.length });
    }
    const lost = stuck.map(describeStuck).join('; ');
    this.#tell(slice, 'Warning', 'GPUSuspendFailed', `${prefix}${lost}`);
    return { ok: false, code: 'failed', reason: `${prefix}${lost}` };
  }

  #runsAgain(slice: Slice, because: string, done: { readonly bytes: number; readonly processes: number }): Suspended {
    if (because === '') {
      this.#tell(slice, 'Normal', 'GPUResumed', `its GPU memory, ${mib(done.bytes)}, is on the GPU again`);
      return { ok: true, ...done };
    }
    const reason = `${because}; its processes run`;
    if (because === WORKING) return { ok: false, code: 'working', reason };
    this.#tell(slice, 'Warning', 'GPUSuspendFailed', reason);
    return { ok: false, code: 'failed', reason };
  }

  /** Makes one call of the driver for a process. */
  async #move(process: Moved, kind: ProcessCall): Promise<Moved> {
    const { pid, bytes } = process;
    const answer = await this.#call((checkpoints) => {
      if (kind === 'state') return checkpoints.state(pid);
      if (kind === 'lock') return checkpoints.lock(pid, WORK_MS);
      if (kind === 'unlock') return checkpoints.unlock(pid);
      return checkpoints[kind](pid, bytes);
    });
    if (answer.result === RESULT.notInitialized) return { ...process, answer, state: 'none' };
    // A process may be in another state than the record says: then the way goes on from there.
    const isStuck = answer.result !== RESULT.success && (answer.state === null || answer.state === process.state);
    return { ...process, answer, state: answer.state, isStuck: isStuck || answer.state === 'failed' };
  }

  /** Whether a call asked for the GPU since `record` began. */
  #isAsked(slice: Slice, { held, asked }: Suspension): boolean {
    const calls = slice.calls();
    return !held && calls !== null && String(calls.asked) !== asked;
  }

  /** Null when the GPU has room for `bytes` more: a restore without room would end the processes. */
  async #waitForRoom({ gpuUuid, usedBytes }: Suspension, bytes: number, waitMs: number): Promise<string | null> {
    if (bytes === 0) return null;
    const { source, memoryBytesOf, clock } = this.#options;
    const most = Math.max(usedBytes, (memoryBytesOf(gpuUuid) ?? 0) - SPARE_BYTES);
    const untilMs = clock.now() + waitMs;
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

  async #obstacles(slice: Slice, seen: readonly SeenProcess[]): Promise<string[]> {
    const coming = [...this.#coming].reduce((sum, [id, bytes]) => (id === slice.id ? sum : sum + bytes), 0);
    const reasons = await this.#options.processes.obstacles(slice, seen, coming);
    return this.#options.checkpoints === null ? ['the agent finds no libcuda.so.1 on this node', ...reasons] : reasons;
  }

  async #call(call: (checkpoints: Checkpoints) => Promise<CheckpointAnswer>): Promise<CheckpointAnswer> {
    this.#check();
    const { checkpoints, log } = this.#options;
    if (checkpoints === null) return { result: null, state: null };
    try {
      const answer = await call(checkpoints);
      // A call that the end of the agent ended says nothing about the process.
      this.#check();
      return answer;
    } catch (error) {
      if (error instanceof Stopped) throw error;
      log.error({ err: error }, 'a call of the checkpoint interface failed');
      return { result: null, state: null };
    }
  }

  #check(): void {
    if (this.#stopped) throw new Stopped('the agent stops');
  }

  async #keep(allocation: string, record: Suspension): Promise<void> {
    this.#check();
    await this.#options.suspensions.keep(allocation, record);
  }

  #tell(slice: Slice, type: SliceNote['type'], reason: string, message: string): void {
    const { usersOf, notices, log } = this.#options;
    log.info({ allocation: slice.id, owner: slice.spec.owner, reason }, message);
    for (const user of usersOf(slice.spec))
      notices.note(user, { type, reason, message: `${user.container}: ${message}` });
  }
}

const asMember = ({ pid, startTicks, bytes }: Moved): Member => ({ pid, startTicks, bytes });

/** Only processes that the driver can name: the others were found to be obstacles. */
function members(seen: readonly SeenProcess[]): Member[] {
  return seen.flatMap(({ pid, startTicks, bytes }) =>
    pid === null || startTicks === null ? [] : [{ pid, startTicks, bytes: bytes ?? 0 }],
  );
}

/** A process without CUDA needs nothing. */
function runs({ state }: Moved): boolean {
  return state === 'running' || state === 'none';
}

function failed(what: string, pid: number, answer: CheckpointAnswer | null): string {
  if (answer === null || answer.result === null) return `process ${pid} did not answer the ${what}: it may be frozen`;
  const lost = answer.state === 'failed' ? ', and the process is lost' : '';
  return `the ${what} of process ${pid} failed with CUDA error ${answer.result}${lost}`;
}

function describeStuck({ pid, state, answer }: Moved): string {
  if (state === 'failed') return `process ${pid} is lost: end its pod`;
  if (state === 'checkpointed' && answer?.result === RESULT.outOfMemory)
    return `process ${pid} found no room on the GPU and cannot be restored any more: end its pod`;
  return `process ${pid} does not run (state ${state ?? 'unknown'}, CUDA error ${answer?.result ?? 'none'}); try to resume it again`;
}
