import { admit } from './workloads/admit.js';
import { runTimers } from './run-timers.js';
import type { Change } from './state/change.js';
import { chargesOf, unchargedOf, type Charge, type UnchargedGpus } from './reports/charges.js';
import type { Command, PodStart, PodStop } from './command.js';
import { checkDemand, checkOptions, checkShape } from './command-shape.js';
import type { Decision } from './admission/decision.js';
import type { Demand } from './admission/demand.js';
import { EventListeners, type EventListener, type ListenerFailed } from './event-listeners.js';
import type { QuotaEvent } from './state/event.js';
import { arriveAt, execute } from './execute.js';
import { explain, type Explanation } from './explain.js';
import type { GrantSpec } from './loans/grants.js';
import type { GroupSpec } from './state/group-spec.js';
import type { GroupUpdate } from './groups/group-update.js';
import type { LoanSpec } from './loans/loans.js';
import type { TransferSpec } from './loans/transfer.js';
import { DEFAULT_POLICY, type Policy } from './state/policy.js';
import { openReservations, type OpenReservation } from './reservations/reserve.js';
import { driftEvents, refresh, refreshSlices, type DriftReport } from './reports/refresh.js';
import { QuotaState, type Counters } from './state/state.js';
import { Simulation } from './reports/simulation.js';
import { statusOf, type GroupStatus } from './reports/status.js';
import type { Workload, WorkloadRef } from './state/workload.js';

/** Returns the time in milliseconds. */
export type Clock = () => number;

/** Options of `Quota`. */
export interface QuotaOptions {
  /** By default the time of the last command. */
  readonly clock?: Clock | undefined;
  readonly policy?: Partial<Policy> | undefined;
  /** Receives what a listener throws; by default an error on the console. */
  readonly listenerFailed?: ListenerFailed | undefined;
}

/** A command and its time. */
export interface Timed {
  readonly command: Command;
  /** By default the time of the engine. */
  readonly at?: number | undefined;
}

/**
 * The engine in memory, without I/O: a call is decided and applied when it returns. Without a clock, the time comes
 * from the commands.
 */
export class Quota {
  readonly #state: QuotaState;
  readonly #clock: Clock;
  readonly #listeners: EventListeners;
  #events: QuotaEvent[] = [];

  constructor(
    options: QuotaOptions = {},
    /** The state of a store; by default an empty one. */
    state?: QuotaState,
  ) {
    checkOptions('Quota', options, ['clock', 'policy', 'listenerFailed']);
    checkOptions('Quota: policy', options.policy, Object.keys(DEFAULT_POLICY));
    this.#listeners = new EventListeners(options.listenerFailed);
    this.#state = state ?? new QuotaState({ ...DEFAULT_POLICY, ...options.policy });
    this.#clock = options.clock ?? (() => this.#state.now);
  }

  /** A counter of work: it grows by one for each key of each group that is read or changed. */
  get counters(): Readonly<Counters> {
    return this.#state.counters;
  }

  get revision(): number {
    return this.#state.revision;
  }

  /** The latest time that a command carried. */
  get now(): number {
    return this.#state.now;
  }

  /** When the next thing happens by time alone, in milliseconds: see `tick`. Null if nothing is scheduled. */
  get nextTimerAt(): number | null {
    const { nextAt } = this.#state.timers;
    return nextAt === Infinity ? null : nextAt;
  }

  execute(command: Command, at: number = this.#clock()): Decision {
    checkShape(command);
    const decision = execute(this.#state, command, at);
    this.#deliver();
    return decision;
  }

  createGroup(spec: GroupSpec): Decision {
    return this.execute({ type: 'createGroup', ...spec });
  }

  updateGroup(update: GroupUpdate): Decision {
    return this.execute({ type: 'updateGroup', ...update });
  }

  deleteGroup(name: string, options: { readonly force?: boolean } = {}): Decision {
    return this.execute({ type: 'deleteGroup', ...options, name });
  }

  admit(demand: Demand, options: { readonly dryRun?: boolean } = {}): Decision {
    checkDemand(demand, 'admit');
    checkOptions('admit', options, ['dryRun']);
    const decision =
      arriveAt(this.#state, this.#clock(), undefined) ?? admit(this.#state, demand, options.dryRun === true);
    this.#deliver();
    return decision;
  }

  reserve(demand: Demand, ttlMs: number, operation?: string): Decision {
    return this.execute({ type: 'reserve', ...demand, ttlMs, operation });
  }

  confirm(reservation: string): Decision {
    return this.execute({ type: 'confirm', reservation });
  }

  cancel(reservation: string): Decision {
    return this.execute({ type: 'cancel', reservation });
  }

  release(workload: WorkloadRef): Decision {
    return this.execute({ type: 'release', workload });
  }

  scale(
    workload: WorkloadRef,
    replicas: number,
    options: { readonly podSet?: string; readonly dryRun?: boolean } = {},
  ): Decision {
    return this.execute({ type: 'scale', workload, replicas, ...options });
  }

  checkHpa(workload: WorkloadRef, maxReplicas: number, mode?: 'advisory' | 'reserve'): Decision {
    return this.execute({ type: 'checkHpa', workload, maxReplicas, mode });
  }

  grant(spec: GrantSpec): Decision {
    return this.execute({ type: 'grant', ...spec });
  }

  loan(spec: LoanSpec): Decision {
    return this.execute({ type: 'loan', ...spec });
  }

  transfer(spec: TransferSpec): Decision {
    return this.execute({ type: 'transfer', ...spec });
  }

  /** A pod was scheduled or resized: its hours count from then on. Late and repeated calls are counted once. */
  podStarted(start: PodStart): Decision {
    return this.execute({ type: 'podStarted', ...start });
  }

  /** A pod ended: its hours count until then. Late and repeated calls are counted once. */
  podStopped(stop: PodStop): Decision {
    return this.execute({ type: 'podStopped', ...stop });
  }

  /** The object of a pod that was stopped with `retain` was deleted. */
  podForgotten(pod: string): Decision {
    return this.execute({ type: 'podForgotten', pod });
  }

  /**
   * Advances the time: reservations, grants and loans that are due end or begin, and thresholds of budgets that running
   * pods have passed are announced. Every other command does the same first; call it at `nextTimerAt`, or every minute.
   */
  tick(): Decision {
    return this.execute({ type: 'tick' });
  }

  /** The limits and usage of a group at a time; null if there is no such group. */
  status(name: string, at: number = this.#clock()): GroupStatus | null {
    const state = this.#stateAt(at);
    const group = state.group(name);
    return group === undefined ? null : statusOf(state, group, Math.max(at, state.now));
  }

  /** Names of all groups, parents before their children. */
  groups(): readonly string[] {
    const groups = [...this.#state.groups.entries()].map(([, group]) => group);
    return groups.sort((a, b) => a.depth - b.depth || (a.name < b.name ? -1 : 1)).map(({ name }) => name);
  }

  /** The charge of a workload, or null. */
  workload(key: string): Workload | null {
    return this.#state.workloads.get(key) ?? null;
  }

  /** Whether a workload has a charge or a reservation. */
  isCharged(key: string): boolean {
    const charged = this.#state.workloads.get(key);
    return (charged !== undefined && !charged.isStale) || (this.#state.reservedIn.get(key) ?? []).length > 0;
  }

  /** The reservations that wait for their objects. */
  reservations(): readonly OpenReservation[] {
    return openReservations(this.#state);
  }

  /** The charges of the workloads of a group; empty if there is no such group. */
  charges(name: string): readonly Charge[] {
    return [...this.eachCharge(name)];
  }

  /**
   * The same, one after the other, for callers that leave the event loop to others in between; valid while nothing
   * changes.
   */
  eachCharge(name: string): Iterable<Charge> {
    const group = this.#state.group(name);
    return group === undefined ? [] : chargesOf(this.#state, group);
  }

  /** The workloads of a group with GPUs that no key of the group charges; empty if there is no such group. */
  unchargedGpus(name: string): readonly UnchargedGpus[] {
    const group = this.#state.group(name);
    return group === undefined ? [] : unchargedOf(this.#state, group);
  }

  /** Explains why a demand would be admitted or refused now; changes nothing. */
  explain(demand: Demand): Explanation {
    checkDemand(demand, 'explain');
    return explain(this.#state, demand, this.#clock());
  }

  /**
   * Computes the result of a script on a fork of the state: the fork copies only what the script changes and is then
   * dropped.
   */
  simulate(script: readonly Timed[]): Simulation {
    const fork = this.#state.fork();
    const events: QuotaEvent[] = [];
    for (const { command } of script) checkShape(command);
    fork.onEvent = (event) => events.push(event);
    const decisions = script.map(({ command, at }) => execute(fork, command, at ?? Math.max(fork.now, this.#clock())));
    return new Simulation(fork, decisions, events);
  }

  /** Recounts all charges and corrects counters that differ: a check, without effect on a state without errors. */
  refresh(): DriftReport {
    const report = refresh(this.#state);
    this.#listeners.deliver(driftEvents(report, this.#state));
    return report;
  }

  /** Recounts in parts of about this number of workloads. */
  refreshSlices(slice: number): Generator<undefined, DriftReport> {
    return refreshSlices(this.#state, slice);
  }

  /**
   * Calls `listener` with the events of each command once the command is applied; the returned function ends the
   * subscription. What a listener throws changes no decision: see `EventListeners`.
   */
  on(listener: EventListener): () => void {
    const remove = this.#listeners.add(listener);
    this.#state.onEvent = (event) => this.#events.push(event);
    return () => {
      remove();
      if (this.#listeners.size === 0) this.#state.onEvent = null;
    };
  }

  /** Receives changed records, for a store; null for none. */
  onChange(sink: ((change: Change) => void) | null): void {
    this.#state.onChange = sink;
  }

  #deliver(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#listeners.deliver(events);
  }

  /** The state at a time, as a temporary fork in which due timers have run. */
  #stateAt(at: number): QuotaState {
    if (this.#state.timers.nextAt > at) return this.#state;
    const fork = this.#state.fork();
    runTimers(fork, at);
    return fork;
  }
}
