import type { Change } from '../core/state/change.js';
import type { Command } from '../core/command.js';
import type { Decision } from '../core/admission/decision.js';
import type { QuotaEvent } from '../core/state/event.js';
import { execute } from '../core/execute.js';
import { recordsOf } from '../core/records/restore.js';
import type { QuotaState } from '../core/state/state.js';
import type { Store } from './store.js';
import type { Writer } from './writer.js';

interface Waiter {
  readonly resolve: (decision: Decision) => void;
  readonly reject: (error: Error) => void;
  readonly decision: Decision;
}

/**
 * Writer for a store that only this engine uses. Commands are executed at once, one after the other, and answered when
 * all changes that they made or depend on are durable. Commands during a write are committed together with the next one
 * (group commit).
 */
export class OwningWriter implements Writer {
  wantsEvents = false;
  onEvents: (events: readonly QuotaEvent[]) => void = () => undefined;
  readonly #state: QuotaState;
  readonly #store: Store;
  #changes: Change[] = [];
  #events: QuotaEvent[] = [];
  #waiters: Waiter[] = [];
  #flushing: Promise<void> | null = null;
  #failed: Error | null = null;

  constructor(state: QuotaState, store: Store) {
    this.#state = state;
    this.#store = store;
    state.onChange = (change) => this.#changes.push(change);
  }

  execute(command: Command, at: number): Promise<Decision> {
    if (this.#failed !== null) return Promise.reject(this.#failed);
    this.#state.onEvent = this.wantsEvents ? (event) => this.#events.push(event) : null;
    const decision = execute(this.#state, command, at);
    if (this.#changes.length === 0 && this.#flushing === null) {
      this.#tell();
      return Promise.resolve(decision);
    }
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject, decision });
      // Runs in the next microtask, so that concurrent commands are written together.
      this.#flushing ??= Promise.resolve().then(() => this.#flush());
    });
  }

  async idle(): Promise<void> {
    await this.#flushing;
  }

  async catchUp(): Promise<void> {
    await this.#flushing;
  }

  revisionOf(): null {
    return null;
  }

  records(): Iterable<Change> {
    return recordsOf(this.#state);
  }

  async #flush(): Promise<void> {
    const state = this.#state;
    while (this.#waiters.length > 0 || this.#changes.length > 0) {
      const [changes, waiters, events] = [this.#changes, this.#waiters, this.#events];
      [this.#changes, this.#waiters, this.#events] = [[], [], []];
      const head = { revision: state.revision, now: state.now, lives: state.lives };
      try {
        if (changes.length > 0) {
          await this.#store.commit({
            head,
            changes,
            expected: new Map(),
            everything: () => recordsOf(state),
            reached: () => state.revision,
          });
        }
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)), waiters);
        return;
      }
      for (const { resolve, decision } of waiters) resolve(decision);
      if (events.length > 0) this.onEvents(events);
    }
    this.#flushing = null;
  }

  /** The state is ahead of the store by an unknown amount; only a restart can recover. */
  #fail(error: Error, waiters: readonly Waiter[]): void {
    this.#failed = error;
    for (const { reject } of [...waiters, ...this.#waiters]) reject(error);
    this.#waiters = [];
    this.#flushing = null;
  }

  #tell(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.onEvents(events);
  }
}
