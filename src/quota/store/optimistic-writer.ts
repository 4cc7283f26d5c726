import { runTimerLate } from '../core/run-timers.js';
import type { Change } from '../core/state/change.js';
import type { Command } from '../core/command.js';
import { LazyDecision, type Decision } from '../core/admission/decision.js';
import type { QuotaEvent } from '../core/state/event.js';
import { execute } from '../core/execute.js';
import { recordsOf } from '../core/records/restore.js';
import type { QuotaState } from '../core/state/state.js';
import type { Timer } from '../core/state/timers.js';
import { syncGroups, changedIn } from './sync-groups.js';
import { conflictKeysOf, conflictKeysOfChanges, conflictKeysOfTimer, groupKey } from './conflict-keys.js';
import { KeyedScheduler, type KeyedBatch } from './keyed-scheduler.js';
import type { Revision, Store } from './store.js';
import type { Writer } from './writer.js';

/** Waits for some milliseconds. */
export type Pause = (ms: number) => Promise<unknown>;

const delay: Pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A command that waits for its decision. */
interface PendingCommand {
  readonly kind: 'asked';
  readonly command: Command;
  readonly at: number;
  /** False for a command with an earlier time than a previous command. */
  readonly isInTime: boolean;
  /** All groups were read since the command arrived, so that its decision is final. */
  readonly isCurrent: boolean;
  readonly names: ReadonlySet<string>;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (error: unknown) => void;
}

/** A due timer. */
interface Due {
  readonly kind: 'due';
  readonly timer: Timer;
  readonly at: number;
  readonly done: () => void;
}

/** Groups to read again, unless they were read after the request. */
interface Reading {
  readonly kind: 'reading';
  readonly groups: readonly string[];
  readonly isNeeded: (group: string) => boolean;
  readonly done: () => void;
  readonly reject: (error: unknown) => void;
}

type Task = PendingCommand | Due | Reading;

/** Result of executing tasks on a fork. */
interface Attempt {
  readonly fork: QuotaState;
  readonly changes: readonly Change[];
  readonly events: ReadonlyMap<PendingCommand | Due, readonly QuotaEvent[]>;
  readonly decisions: ReadonlyMap<PendingCommand, Decision>;
}

const MAX_ATTEMPTS = 12;
const FIRST_PAUSE_MS = 2;
const PAUSE_GROWTH = 1.6;

/**
 * Writer for a store that several engines share (optimistic concurrency). Waiting commands are decided on a fork of the
 * state and committed together, with the revisions of the groups that they used as precondition. On a conflict the
 * groups are read again and all commands are decided again. A command is never refused on outdated data: either a
 * successful commit in the same batch proves that the groups were current, or they are read first.
 *
 * Decisions about different groups are committed concurrently; decisions about the same group wait for the running
 * commit and join the next one: see KeyedScheduler. A batch changes the state only within its keys, so that batches do
 * not affect each other.
 */
export class OptimisticWriter implements Writer {
  wantsEvents = false;
  onEvents: (events: readonly QuotaEvent[]) => void = () => undefined;
  readonly #state: QuotaState;
  readonly #store: Store;
  readonly #revisions: Map<string, Revision>;
  readonly #pause: Pause;
  readonly #scheduler = new KeyedScheduler<Task>((batch) => this.#run(batch));
  #latest = 0;

  constructor(state: QuotaState, store: Store, revisions: ReadonlyMap<string, Revision>, pause: Pause = delay) {
    this.#pause = pause;
    this.#state = state;
    this.#store = store;
    this.#revisions = new Map(revisions);
  }

  async execute(command: Command, at: number): Promise<Decision> {
    const isInTime = at >= this.#latest;
    if (isInTime) this.#latest = at;
    this.#state.latest = this.#latest;
    const due = this.#startTimers(at);
    const decided = new Promise<Decision>((resolve, reject) =>
      this.#enqueue({ command, at, isInTime, isCurrent: false, resolve, reject }),
    );
    if (due.length === 0) return decided;
    // Commands that arrive later find both done.
    const [decision] = await Promise.all([decided, ...due]);
    return decision;
  }

  idle(): Promise<void> {
    return this.#scheduler.idle();
  }

  records(): Iterable<Change> {
    return recordsOf(this.#state);
  }

  revisionOf(group: string): Revision | null {
    return this.#revisions.get(group) ?? null;
  }

  async catchUp(groups?: readonly string[]): Promise<void> {
    const known = new Map(this.#revisions);
    const changed = groups ?? (await changedIn(this.#revisions, this.#store));
    // This engine may have read the groups since then.
    const isNeeded = (group: string): boolean =>
      (this.#revisions.get(group) ?? null) === (known.get(group) ?? null) || groups !== undefined;
    const old = changed.filter((group) => this.#state.group(group) !== undefined && this.#revisions.has(group));
    const others = changed.filter((group) => !old.includes(group));
    await Promise.all(
      [...old.map((group) => [group]), ...(others.length === 0 ? [] : [others])].map((some) =>
        this.#read(some, isNeeded),
      ),
    );
  }

  #enqueue(asked: Omit<PendingCommand, 'kind' | 'names'>): void {
    const names = conflictKeysOf(this.#state, asked.command);
    this.#scheduler.add({ kind: 'asked', names, ...asked }, names);
  }

  #read(groups: readonly string[], isNeeded: (group: string) => boolean): Promise<void> {
    return new Promise((done, reject) =>
      this.#scheduler.add({ kind: 'reading', groups, isNeeded, done, reject }, new Set(groups.map(groupKey))),
    );
  }

  /** Starts the timers that are due at a time; resolves when they have run. */
  #startTimers(at: number): readonly Promise<void>[] {
    const woken: Promise<void>[] = [];
    for (let timer = this.#state.timers.takeDue(at); timer !== null; timer = this.#state.timers.takeDue(at)) {
      const names = conflictKeysOfTimer(this.#state, timer);
      if (names === null) continue;
      const due = timer;
      woken.push(new Promise((done) => this.#scheduler.add({ kind: 'due', timer: due, at, done }, names)));
    }
    return woken;
  }

  async #run(batch: KeyedBatch<Task>): Promise<void> {
    const open = new Set(batch.items);
    try {
      const readings = batch.items.flatMap((task) => (task.kind === 'reading' ? [task] : []));
      const groups = readings.flatMap((task) => task.groups.filter(task.isNeeded));
      if (groups.length > 0 && !(await this.#sync(batch, open, groups))) return;
      for (const task of readings) {
        open.delete(task);
        task.done();
      }
      await this.#decide(batch, open);
    } catch (error) {
      for (const task of open) this.#fail(task, error);
    }
  }

  #fail(task: Task, error: unknown): void {
    if (task.kind !== 'due') return task.reject(error);
    // The timer stays due, and the next command runs it.
    this.#state.timers.push(task.timer);
    task.done();
  }

  /**
   * Reads groups again. False if this needs groups outside the batch: the tasks are then requeued with these groups.
   */
  async #sync(batch: KeyedBatch<Task>, open: ReadonlySet<Task>, groups: readonly string[]): Promise<boolean> {
    const missing = await syncGroups(this.#state, this.#revisions, this.#store, groups, (names) =>
      this.#scheduler.extend(batch, names.map(groupKey)),
    );
    if (missing !== null) this.#scheduler.requeue(batch, [...open], missing.map(groupKey));
    return missing === null;
  }

  /** Decides the open tasks, and removes the answered ones. */
  async #decide(batch: KeyedBatch<Task>, open: Set<Task>): Promise<void> {
    let isFresh = false;
    for (let attempt = 0; open.size > 0;) {
      const attempted = this.#try(open);
      const touched = conflictKeysOfChanges(attempted.fork, attempted.changes);
      if (!this.#scheduler.extend(batch, touched)) return this.#scheduler.requeue(batch, [...open], touched);
      let proven: ReadonlySet<string> = new Set();
      if (attempted.changes.length > 0) {
        const conflict = await this.#commit(attempted);
        if (conflict !== null) {
          if (++attempt >= MAX_ATTEMPTS) return this.#rejectAll(open);
          await this.#pause(FIRST_PAUSE_MS * PAUSE_GROWTH ** (attempt - 1) * Math.random());
          if (!(await this.#sync(batch, open, [...new Set([...attempted.fork.changedNames(), ...conflict])]))) return;
          isFresh = false;
          continue;
        }
        proven = new Set(attempted.fork.changedNames().map(groupKey));
      } else this.#state.timers.applyFork(attempted.fork.timers);
      const isFinal = (task: PendingCommand, decision: Decision): boolean =>
        isFresh || task.isCurrent || !isRefusedOnKnownData(decision) || isProven(task.names, proven);
      this.#answer(attempted, open, isFinal);
      if (open.size === 0) return;
      if (!(await this.#readFor(batch, open))) return;
      isFresh = true;
    }
  }

  #try(open: ReadonlySet<Task>): Attempt {
    const fork = this.#state.fork();
    const changes: Change[] = [];
    const events = new Map<PendingCommand | Due, readonly QuotaEvent[]>();
    const decisions = new Map<PendingCommand, Decision>();
    fork.onChange = (change) => changes.push(change);
    for (const task of open) {
      if (task.kind === 'reading') continue;
      const told: QuotaEvent[] = [];
      if (this.wantsEvents) fork.onEvent = (event) => told.push(event);
      if (task.kind === 'due') runTimerLate(fork, task.timer, task.at);
      else decisions.set(task, execute(fork, task.command, task.isInTime ? Math.max(task.at, fork.now) : task.at));
      events.set(task, told);
    }
    // Only now: each timer runs at its own time.
    for (const task of open) if (task.kind === 'due') fork.now = Math.max(fork.now, task.at);
    return { fork, changes, events, decisions };
  }

  /** Null when the commit is durable; otherwise the groups that other engines changed. */
  async #commit({ fork, changes }: Attempt): Promise<readonly string[] | null> {
    const touched = fork.changedNames();
    const expected = new Map(touched.map((name) => [name, this.#revisions.get(name) ?? null]));
    const head = { revision: fork.revision, now: fork.now, lives: fork.lives };
    const committed = await this.#store.commit({
      head,
      changes,
      expected,
      everything: () => recordsOf(this.#state),
      reached: () => fork.revision,
    });
    if (!committed.ok) return committed.groups;
    for (const name of touched) this.#revisions.delete(name);
    for (const [name, revision] of committed.revisions) this.#revisions.set(name, revision);
    this.#state.applyFork(fork);
    return null;
  }

  #answer(
    { events, decisions }: Attempt,
    open: Set<Task>,
    isFinal: (task: PendingCommand, decision: Decision) => boolean,
  ): void {
    const answered = [...open].filter(
      (task): task is PendingCommand | Due =>
        task.kind === 'due' || (task.kind === 'asked' && isFinal(task, decisions.get(task) as Decision)),
    );
    const told = answered.flatMap((task) => events.get(task) ?? []);
    for (const task of answered) {
      open.delete(task);
      if (task.kind === 'due') task.done();
      else task.resolve(decisions.get(task) as Decision);
    }
    if (told.length > 0) this.onEvents(told);
  }

  /** Reads the groups that could change the decisions on open tasks; false if a read elsewhere takes over. */
  async #readFor(batch: KeyedBatch<Task>, open: Set<Task>): Promise<boolean> {
    const groups = new Set<string>();
    for (const task of open) {
      if (task.kind !== 'asked') continue;
      const names = groupsOf(this.#state, task.command);
      for (const name of names ?? []) groups.add(name);
      if (names !== null) continue;
      open.delete(task);
      // Not in this batch: a batch must not wait for the keys of another one.
      this.catchUp().then(() => this.#enqueue({ ...task, isCurrent: true }), task.reject);
    }
    return open.size > 0 && (await this.#sync(batch, open, [...groups]));
  }

  #rejectAll(open: ReadonlySet<Task>): void {
    const reason = `concurrent changes of the same groups made ${MAX_ATTEMPTS} attempts fail; retry the command`;
    for (const task of open) {
      if (task.kind === 'asked')
        task.resolve(new LazyDecision({ allowed: false, code: 'Conflict', reason, revision: this.#state.revision }));
      else this.#fail(task, new Error(reason));
    }
  }
}

/** The groups that must be current before a command is refused; null if the command does not name them. */
function groupsOf(state: QuotaState, command: Command): readonly string[] | null {
  switch (command.type) {
    case 'createGroup':
    case 'updateGroup':
      return [command.name, command.parent ?? state.group(command.name)?.parent ?? ''].filter((name) => name !== '');
    case 'deleteGroup':
    case 'terminateGroup':
      return [command.name];
    case 'admit':
    case 'reserve':
      return command.group === '' ? null : [command.group];
    case 'grant':
    case 'observe':
      return [command.group];
    case 'loan':
      return [command.lender, command.borrower];
    case 'transfer':
      return [command.from, command.to];
    default:
      return null;
  }
}

/** Whether more recent data could change the decision. */
function isRefusedOnKnownData(decision: Decision): boolean {
  return !decision.allowed || decision.code === 'NotManaged';
}

/** Whether all groups among some keys are proven current. */
function isProven(names: ReadonlySet<string>, proven: ReadonlySet<string>): boolean {
  if (proven.size === 0) return false;
  let groups = 0;
  for (const name of names) {
    if (!name.startsWith('g ')) continue;
    groups++;
    if (!proven.has(name)) return false;
  }
  return groups > 0;
}
