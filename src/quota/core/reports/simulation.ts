import type { Decision } from '../admission/decision.js';
import type { QuotaEvent } from '../state/event.js';
import { statusFrom, statusSourceOf, type GroupStatus, type StatusSource } from './status.js';
import type { QuotaState } from '../state/state.js';

/** The result of a simulated script. */
export class Simulation {
  readonly decisions: readonly Decision[];
  readonly events: readonly QuotaEvent[];
  readonly #sources: readonly StatusSource[];
  readonly #now: number;
  #changed: readonly GroupStatus[] | null = null;

  /** Takes the changed groups of a fork that nothing changes any more. */
  constructor(fork: QuotaState, decisions: readonly Decision[], events: readonly QuotaEvent[]) {
    this.decisions = decisions;
    this.events = events;
    this.#now = fork.now;
    // Copies also of groups that are only read: the state below the fork changes later.
    this.#sources = fork.changedGroups().map((group) => statusSourceOf(fork, fork.ownAll(fork.chainOf(group))));
  }

  /** The groups that the script would change, in their final state. */
  get changed(): readonly GroupStatus[] {
    this.#changed ??= this.#sources.map((source) => statusFrom(source, this.#now));
    return this.#changed;
  }
}
