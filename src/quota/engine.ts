import type { Command, PodStart, PodStop } from './core/command.js';
import type { Change } from './core/state/change.js';
import { checkOptions, checkShape } from './core/command-shape.js';
import type { Decision } from './core/admission/decision.js';
import type { Demand } from './core/admission/demand.js';
import { EventListeners, type EventListener, type ListenerFailed } from './core/event-listeners.js';
import type { Explanation } from './core/explain.js';
import type { GrantSpec } from './core/loans/grants.js';
import type { GroupSpec } from './core/state/group-spec.js';
import type { GroupUpdate } from './core/groups/group-update.js';
import type { LoanSpec } from './core/loans/loans.js';
import type { TransferSpec } from './core/loans/transfer.js';
import type { Observation } from './core/workloads/observe.js';
import { DEFAULT_POLICY, type Policy } from './core/state/policy.js';
import { Quota, type Clock, type Timed } from './core/quota.js';
import type { Simulation } from './core/reports/simulation.js';
import type { OpenReservation } from './core/reservations/reserve.js';
import type { Charge, UnchargedGpus } from './core/reports/charges.js';
import { driftEvents, type DriftReport } from './core/reports/refresh.js';
import { Restorer } from './core/records/restore.js';
import type { GroupStatus } from './core/reports/status.js';
import type { QuotaState } from './core/state/state.js';
import { refKey, type WorkloadRef } from './core/state/workload.js';
import { OptimisticWriter, type Pause } from './store/optimistic-writer.js';
import { OwningWriter } from './store/owning-writer.js';
import { MemoryStore } from './store/memory-store.js';
import type { Revision, Store } from './store/store.js';
import type { Writer } from './store/writer.js';

export interface EngineOptions {
  /** The store; without one, the engine keeps its state in memory. */
  readonly store?: Store | undefined;
  /** The clock; by default the machine's. */
  readonly clock?: Clock | undefined;
  readonly policy?: Partial<Policy> | undefined;
  /** Waits between two attempts at a commit that conflicted with another writer. */
  readonly pause?: Pause | undefined;
  /** Receives what a listener throws; by default an error on the console. */
  readonly listenerFailed?: ListenerFailed | undefined;
}

/**
 * The engine on a store: it answers when the effect of a decision is durable, and writes commands of the same moment in
 * one commit.
 */
export class QuotaEngine {
  readonly #store: Store;
  readonly #quota: Quota;
  readonly #writer: Writer;
  readonly #clock: Clock;
  readonly #listeners: EventListeners;
  #isClosed = false;

  private constructor(
    store: Store,
    state: QuotaState,
    writer: Writer,
    { clock = Date.now, listenerFailed }: EngineOptions,
  ) {
    this.#store = store;
    this.#writer = writer;
    this.#clock = clock;
    this.#quota = new Quota({ clock }, state);
    this.#listeners = new EventListeners(listenerFailed);
    writer.onEvents = (events) => this.#listeners.deliver(events);
  }

  /** Reads the store and starts to decide. Rejects with a `ShapeError` for an option that does not exist. */
  static async open(options: EngineOptions = {}): Promise<QuotaEngine> {
    checkOptions('createEngine', options, ['store', 'clock', 'policy', 'pause', 'listenerFailed']);
    checkOptions('createEngine: policy', options.policy, Object.keys(DEFAULT_POLICY));
    const store = options.store ?? new MemoryStore();
    const restorer = new Restorer({ ...DEFAULT_POLICY, ...options.policy });
    const { head, revisions } = await store.load(restorer);
    const state = restorer.finish(head);
    const writer = store.exclusive
      ? new OwningWriter(state, store)
      : new OptimisticWriter(state, store, revisions, options.pause);
    return new QuotaEngine(store, state, writer, options);
  }

  /**
   * Decides a command and answers when its changes are durable. Rejects if the store failed, and with a `ShapeError`
   * that names the field if the command does not have the shape of its type.
   */
  execute(command: Command, at: number = this.#clock()): Promise<Decision> {
    try {
      checkShape(command);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
    if (this.#isClosed) return Promise.reject(new Error(`${command.type}: the engine is closed; open another one`));
    return this.#writer.execute(command, at);
  }

  createGroup(spec: GroupSpec): Promise<Decision> {
    return this.execute({ type: 'createGroup', ...spec });
  }

  updateGroup(update: GroupUpdate): Promise<Decision> {
    return this.execute({ type: 'updateGroup', ...update });
  }

  deleteGroup(name: string, options: { readonly force?: boolean } = {}): Promise<Decision> {
    return this.execute({ type: 'deleteGroup', ...options, name });
  }

  admit(demand: Demand, options: { readonly dryRun?: boolean } = {}): Promise<Decision> {
    return this.execute({ type: 'admit', ...demand, ...options });
  }

  reserve(demand: Demand, ttlMs: number, operation?: string): Promise<Decision> {
    return this.execute({ type: 'reserve', ...demand, ttlMs, operation });
  }

  confirm(reservation: string): Promise<Decision> {
    return this.execute({ type: 'confirm', reservation });
  }

  cancel(reservation: string): Promise<Decision> {
    return this.execute({ type: 'cancel', reservation });
  }

  release(workload: WorkloadRef): Promise<Decision> {
    return this.execute({ type: 'release', workload });
  }

  scale(
    workload: WorkloadRef,
    replicas: number,
    options: { readonly podSet?: string; readonly dryRun?: boolean } = {},
  ): Promise<Decision> {
    return this.execute({ type: 'scale', workload, replicas, ...options });
  }

  checkHpa(workload: WorkloadRef, maxReplicas: number, mode?: 'advisory' | 'reserve'): Promise<Decision> {
    return this.execute({ type: 'checkHpa', workload, maxReplicas, mode });
  }

  grant(spec: GrantSpec): Promise<Decision> {
    return this.execute({ type: 'grant', ...spec });
  }

  loan(spec: LoanSpec): Promise<Decision> {
    return this.execute({ type: 'loan', ...spec });
  }

  transfer(spec: TransferSpec): Promise<Decision> {
    return this.execute({ type: 'transfer', ...spec });
  }

  /** Charges an object as it was observed: see observe.ts. */
  observe(observation: Observation): Promise<Decision> {
    return this.execute({ type: 'observe', ...observation });
  }

  /** A pod was scheduled or resized: its hours count from then on. Late and repeated calls are counted once. */
  podStarted(start: PodStart): Promise<Decision> {
    return this.execute({ type: 'podStarted', ...start });
  }

  /** A pod ended: its hours count until then. Late and repeated calls are counted once. */
  podStopped(stop: PodStop): Promise<Decision> {
    return this.execute({ type: 'podStopped', ...stop });
  }

  /** The object of a pod that was stopped with `retain` was deleted. */
  podForgotten(pod: string): Promise<Decision> {
    return this.execute({ type: 'podForgotten', pod });
  }

  /**
   * Advances the time: reservations, grants and loans that are due end or begin, and thresholds of budgets that running
   * pods have passed are announced. Every other command does the same first; call it at `nextTimerAt`, or every minute.
   */
  tick(): Promise<Decision> {
    return this.execute({ type: 'tick' });
  }

  /** The latest time that a command carried. */
  get now(): number {
    return this.#quota.now;
  }

  /** When the next thing happens by time alone, in milliseconds: see `tick`. Null if nothing is scheduled. */
  get nextTimerAt(): number | null {
    return this.#quota.nextTimerAt;
  }

  /** A group as this engine knows it; on a shared store, as of its last read. */
  status(name: string, at?: number): GroupStatus | null {
    return this.#quota.status(name, at);
  }

  /** Names of all groups, parents before their children. */
  groups(): readonly string[] {
    return this.#quota.groups();
  }

  /** Whether the engine knows a charge or a reservation of a workload. */
  isCharged(workload: WorkloadRef): boolean {
    return this.#quota.isCharged(refKey(workload));
  }

  /** The charges of the workloads of a group, as this engine knows them; empty if there is no such group. */
  charges(group: string): readonly Charge[] {
    return this.#quota.charges(group);
  }

  /** The workloads of a group with GPUs that no key of the group charges; empty if there is no such group. */
  unchargedGpus(group: string): readonly UnchargedGpus[] {
    return this.#quota.unchargedGpus(group);
  }

  /** The reservations that wait for their objects, as this engine knows them. */
  reservations(): readonly OpenReservation[] {
    return this.#quota.reservations();
  }

  /** Explains why a demand would be admitted or refused now; changes nothing. */
  explain(demand: Demand): Explanation {
    return this.#quota.explain(demand);
  }

  /** Computes the result of a script; changes nothing. */
  simulate(script: readonly Timed[]): Simulation {
    return this.#quota.simulate(script);
  }

  /** Reads other engines' writes from the store, for these groups or for all. */
  catchUp(groups?: readonly string[]): Promise<void> {
    return this.#writer.catchUp(groups);
  }

  /** The revision of a group that this engine knows; null if it knows none, or if the store is exclusive. */
  revisionOf(group: string): Revision | null {
    return this.#writer.revisionOf(group);
  }

  /** Recounts all charges and corrects counters that differ. */
  refresh(): DriftReport {
    const report = this.#quota.refresh();
    this.#listeners.deliver(driftEvents(report, this.#quota));
    return report;
  }

  /** The state of this engine, as records. */
  records(): Iterable<Change> {
    return this.#writer.records();
  }

  /**
   * Calls `listener` with every event once it is durable and its command is answered; the returned function ends the
   * subscription. What a listener throws changes no decision: see `EventListeners`.
   */
  on(listener: EventListener): () => void {
    const remove = this.#listeners.add(listener);
    this.#writer.wantsEvents = true;
    return () => {
      remove();
      this.#writer.wantsEvents = this.#listeners.size > 0;
    };
  }

  /** Waits for running commands and closes the store; later commands are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writer.idle();
    await this.#store.close();
  }
}

/** Opens an engine: in memory, or on a store. */
export function createEngine(options: EngineOptions = {}): Promise<QuotaEngine> {
  return QuotaEngine.open(options);
}
