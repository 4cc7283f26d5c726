import { setTimeout as delay } from 'node:timers/promises';
import type { Change } from '../core/change.js';
import type { Command } from '../core/command.js';
import { LazyDecision, type Decision } from '../core/decision.js';
import type { QuotaEvent } from '../core/event.js';
import { execute } from '../core/execute.js';
import { recordsOf } from '../core/restore.js';
import type { QuotaState } from '../core/state.js';
import { catchUp, catchUpAll } from './follow.js';
import type { Revision, Store } from './store.js';
import type { Writer } from './writer.js';

/** Waits for some milliseconds. */
export type Pause = (ms: number) => Promise<unknown>;

interface Waiting {
  readonly command: Command;
  readonly at: number;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (error: unknown) => void;
}

/** Commands of one commit at most. */
const MAX_BATCH = 256;
const MAX_ATTEMPTS = 12;
const FIRST_PAUSE_MS = 2;
const PAUSE_GROWTH = 1.6;

/**
 * For a store that others write to as well: what waits is decided on a fork of the state and committed together, on the condition that
 * the groups it was decided on are still what they were. If not, they are read anew and everything is decided again. Nothing is refused
 * for want of room on what may be out of date: the groups are read anew first.
 */
export class OptimisticWriter implements Writer {
  wantsEvents = false;
  onEvents: (events: readonly QuotaEvent[]) => void = () => undefined;
  readonly #state: QuotaState;
  readonly #store: Store;
  readonly #revisions: Map<string, Revision>;
  readonly #pause: Pause;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;

  constructor(state: QuotaState, store: Store, revisions: ReadonlyMap<string, Revision>, pause: Pause = delay) {
    this.#pause = pause;
    this.#state = state;
    this.#store = store;
    this.#revisions = new Map(revisions);
  }

  execute(command: Command, at: number): Promise<Decision> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, at, resolve, reject });
      this.#running ??= Promise.resolve().then(() => this.#run());
    });
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  records(): Iterable<Change> {
    return recordsOf(this.#state);
  }

  async catchUp(): Promise<void> {
    await this.#running;
    await catchUpAll(this.#state, this.#revisions, this.#store);
  }

  async #readFor(commands: readonly Waiting[]): Promise<void> {
    const groups = commands.map(({ command }) => groupsOf(this.#state, command));
    if (groups.includes(null)) await catchUpAll(this.#state, this.#revisions, this.#store);
    else await catchUp(this.#state, this.#revisions, this.#store, groups.flatMap((names) => names ?? []));
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      try {
        const decisions = await this.#decide(batch);
        batch.forEach(({ resolve }, index) => resolve(decisions[index] as Decision));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = null;
  }

  async #decide(batch: readonly Waiting[]): Promise<readonly Decision[]> {
    let isFresh = false;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const fork = this.#state.fork();
      const changes: Change[] = [];
      const events: QuotaEvent[] = [];
      fork.onChange = (change) => changes.push(change);
      if (this.wantsEvents) fork.onEvent = (event) => events.push(event);
      const decisions = batch.map(({ command, at }) => execute(fork, command, at));
      const doubtful = batch.filter((_, index) => isDoubtful(decisions[index] as Decision));
      if (doubtful.length > 0 && !isFresh) {
        isFresh = true;
        await this.#readFor(doubtful);
        continue;
      }
      const touched = fork.changedNames();
      if (changes.length > 0) {
        const expected = new Map(touched.map((name) => [name, this.#revisions.get(name) ?? null]));
        const head = { revision: fork.revision, now: fork.now, lives: fork.lives };
        const committed = await this.#store.commit({ head, changes, expected, everything: () => recordsOf(this.#state), reached: () => fork.revision });
        if (!committed.ok) {
          await this.#pause(FIRST_PAUSE_MS * PAUSE_GROWTH ** attempt * Math.random());
          await catchUp(this.#state, this.#revisions, this.#store, [...new Set([...touched, ...committed.groups])]);
          isFresh = false;
          continue;
        }
        for (const name of touched) this.#revisions.delete(name);
        for (const [name, revision] of committed.revisions) this.#revisions.set(name, revision);
      }
      this.#state.adopt(fork);
      if (events.length > 0) this.onEvents(events);
      return decisions;
    }
    const reason = `others changed the same groups ${MAX_ATTEMPTS} times`;
    return batch.map(() => new LazyDecision({ allowed: false, code: 'Conflict', reason, revision: this.#state.revision }));
  }
}

/** The groups that a command is about: what has to be current before it is refused. Null where only the whole state can say. */
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
    default:
      return null;
  }
}

/** An answer that might be another one if more was known. */
function isDoubtful(decision: Decision): boolean {
  return !decision.allowed || decision.code === 'NotManaged';
}
