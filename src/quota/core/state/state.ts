import { AmountBlocks } from './amount-blocks.js';
import { LevelChain } from './level-chain.js';
import type { Change } from './change.js';
import type { QuotaEvent } from './event.js';
import { bareGroup, forkGroup, listsOf, type Chain, type Group, type GroupLists } from './group.js';
import { GroupAmounts } from './group-amounts.js';
import { LayeredMap } from './layered-map.js';
import { LayoutTable } from '../amounts/layout.js';
import type { Loan } from './loan.js';
import { groupOfPod, type Pod } from './pod.js';
import type { Policy } from './policy.js';
import { reservationKey, type Candidate, type Reservation } from './reservation.js';
import { RequestShapeTable } from './request-shape.js';
import { TimerQueue } from './timers.js';
import type { Workload } from './workload.js';

/** Counts work, to prove the cost of decisions: one for each key of a group that is read or changed. */
export interface Counters {
  keysTested: number;
  keysCharged: number;
}

/** The whole state of the engine. Only the functions of this folder change it. */
export class QuotaState {
  readonly policy: Policy;
  readonly layouts: LayoutTable;
  readonly shapes: RequestShapeTable;
  readonly groups: LayeredMap<string, Group>;
  readonly workloads: LayeredMap<string, Workload>;
  readonly pods: LayeredMap<string, Pod>;
  readonly reservations: LayeredMap<string, Reservation>;
  readonly loans: LayeredMap<string, Loan>;
  /** Groups with a reservation for a workload, by `refKey`. */
  readonly reservedIn: LayeredMap<string, readonly string[]>;
  /** Keys of reservations, by operation. */
  readonly operations: LayeredMap<string, string>;
  readonly timers: TimerQueue;
  /** Memory of the groups' amounts. */
  readonly blocks = new AmountBlocks();
  readonly counters: Counters = { keysTested: 0, keysCharged: 0 };
  /** Number of changes. */
  revision = 0;
  /** Number of changes of limits, modes and keys, which chains depend on. */
  structure = 0;
  /** The latest time of a command. */
  now = 0;
  /** The latest time that any caller named, also for commands in the queue; at least `now`. */
  latest = 0;
  /** The `life` of the group that was created last. */
  lives = 0;
  /** Receives changed records, for a store. */
  onChange: ((change: Change) => void) | null = null;
  /** Receives events, for listeners. */
  onEvent: ((event: QuotaEvent) => void) | null = null;
  /** The actor of the current command. */
  actor: string | undefined;
  readonly #isFork: boolean;

  constructor(policy: Policy, below: QuotaState | null = null) {
    this.policy = policy;
    this.layouts = below?.layouts ?? new LayoutTable();
    this.shapes = below?.shapes ?? new RequestShapeTable(policy.families);
    this.groups = new LayeredMap(below?.groups);
    this.workloads = new LayeredMap(below?.workloads);
    this.pods = new LayeredMap(below?.pods);
    this.reservations = new LayeredMap(below?.reservations);
    this.loans = new LayeredMap(below?.loans);
    this.reservedIn = new LayeredMap(below?.reservedIn);
    this.operations = new LayeredMap(below?.operations);
    this.timers = below?.timers.fork() ?? new TimerQueue();
    this.#isFork = below !== null;
    if (below !== null) {
      this.revision = below.revision;
      this.now = below.now;
      this.lives = below.lives;
      this.actor = below.actor;
    }
  }

  /** A group for reading. */
  group(name: string): Group | undefined {
    return this.groups.get(name);
  }

  /** The group for changing; in a fork, a copy. */
  own(group: Group): Group {
    if (!this.#isFork || group.owner === this) return group;
    if (this.groups.isChanged(group.name)) return this.groups.get(group.name) ?? group;
    const copy = forkGroup(group, this, this.blocks);
    this.groups.replace(group.name, copy);
    return copy;
  }

  /** The chain with groups for changing. */
  ownAll(chain: Chain): Chain {
    if (!this.#isFork) return chain;
    // If a group of this fork has a cached chain, all groups of that chain are copies.
    for (let at: Chain | null = chain; at !== null && at.first.chain !== at; at = at.above) this.own(at.first);
    return this.chainOf(this.own(chain.first));
  }

  /** The chain of a group, for reading. */
  chainOf(group: Group): Chain {
    const known = group.chain;
    // In a fork, a group that is not copied may have a copied parent.
    const isMine = !this.#isFork || group.owner === this;
    if (isMine && known !== null && known.structure === this.structure) return known;
    const parent = group.mode === 'carved' || group.parent === '' ? undefined : this.group(group.parent);
    const chain = new LevelChain(group, parent === undefined ? null : this.chainOf(parent), this.structure);
    if (isMine && (chain.above === null || chain.above.first.chain === chain.above)) group.chain = chain;
    return chain;
  }

  /** Sets a new group. */
  add(group: Group): void {
    if (this.#isFork) group.owner = this;
    this.groups.set(group.name, group);
  }

  /** Sets the charge of a workload in a group, in place of `old`; the caller updates the counters. */
  putWorkload(group: Group, workload: Workload, old: Workload | null): void {
    if (workload === old) return;
    this.workloads.set(workload.key, workload);
    listsOf(group).workloads.enter(workload, old);
    this.onChange?.({ kind: 'workload', key: workload.key, group: group.name, value: workload });
  }

  /** Removes the charge of a workload; the caller updates the counters. */
  removeWorkload(group: Group, old: Workload): void {
    this.workloads.delete(old.key);
    listsOf(group).workloads.leave(old);
    this.onChange?.({ kind: 'workload', key: old.key, group: group.name, value: null });
  }

  /**
   * Sets the reservation of a workload in a group, or removes it without candidates; the caller updates the counters.
   */
  putReservation(group: Group, workload: string, candidates: readonly Candidate[]): void {
    const key = reservationKey(workload, group.name);
    for (const { id } of this.reservations.get(key)?.candidates ?? []) this.operations.delete(id);
    for (const { id } of candidates) this.operations.set(id, key);
    const value = candidates.length === 0 ? null : { key, workload, group: group.name, candidates };
    const others = (this.reservedIn.get(workload) ?? []).filter((name) => name !== group.name);
    const holders = value === null ? others : [...others, group.name];
    if (holders.length === 0) this.reservedIn.delete(workload);
    else this.reservedIn.set(workload, holders);
    if (value === null) {
      this.reservations.delete(key);
      listsOf(group).reserved.delete(key);
    } else {
      this.reservations.set(key, value);
      listsOf(group).reserved.set(key, true);
    }
    this.onChange?.({ kind: 'reservation', key, group: group.name, value });
  }

  putPod(key: string, value: Pod | null): void {
    const known = value ?? this.pods.get(key);
    const group = known === undefined ? '' : groupOfPod(known);
    if (value === null) this.pods.delete(key);
    else this.pods.set(key, value);
    this.onChange?.({ kind: 'pod', key, group, value });
  }

  putLoan(key: string, value: Loan | null): void {
    const group = (value ?? this.loans.get(key))?.borrower ?? '';
    if (value === null) this.loans.delete(key);
    else this.loans.set(key, value);
    this.onChange?.({ kind: 'loan', key, group, value });
  }

  /** Must be called after a change of the group's record: limits, budgets, grants. */
  groupChanged(group: Group): void {
    this.onChange?.({ kind: 'group', key: group.name, group: group.name, value: group });
  }

  /** Removes a group without workloads and children. */
  remove(group: Group): void {
    this.groups.delete(group.name);
    this.onChange?.({ kind: 'group', key: group.name, group: group.name, value: null });
  }

  /** Emits an event to listeners. */
  emit(event: Omit<QuotaEvent, 'at' | 'revision' | 'actor'>): void {
    if (this.onEvent === null) return;
    const { now: at, revision, actor } = this;
    this.onEvent(actor === undefined ? { ...event, at, revision } : { ...event, at, revision, actor });
  }

  /** A copy-on-write fork of this state. */
  fork(): QuotaState {
    return new QuotaState(this.policy, this);
  }

  /** In a fork: names of the groups that it changed, created or removed. */
  changedNames(): readonly string[] {
    return this.groups.changes().map(([name]) => name);
  }

  /** In a fork: the changed groups, without removed ones. */
  changedGroups(): readonly Group[] {
    return this.groups.changedValues();
  }

  /** Applies the changes of a fork. Other changes of this state since the fork must not concern the same groups. */
  applyFork(fork: QuotaState): void {
    const left = fork.workloads.changes().map(([key]) => this.workloads.get(key));
    for (const old of left) {
      const group = old === undefined ? undefined : this.group(old.group);
      if (old !== undefined && group !== undefined) listsOf(group).workloads.leave(old);
    }
    for (const [name, changed] of fork.groups.changes()) {
      if (changed === undefined) {
        this.groups.delete(name);
        continue;
      }
      let mine = this.groups.get(name);
      if (mine === undefined || mine.life !== changed.life) {
        mine = bareGroup(name, changed.life, changed.parent, changed.depth, changed.layout, this.blocks);
        this.add(mine);
      }
      applyGroupFork(mine, changed, this.blocks);
    }
    for (const [key, workload] of fork.workloads.changes()) {
      if (workload === undefined) this.workloads.delete(key);
      else this.workloads.set(key, workload);
      const group = workload === undefined ? undefined : this.group(workload.group);
      if (workload !== undefined && group !== undefined) listsOf(group).workloads.enter(workload, null);
    }
    this.pods.applyFork(fork.pods);
    this.reservations.applyFork(fork.reservations);
    this.loans.applyFork(fork.loans);
    this.reservedIn.applyFork(fork.reservedIn);
    this.operations.applyFork(fork.operations);
    this.timers.applyFork(fork.timers);
    if (fork.structure > 0) this.structure++;
    this.revision = Math.max(this.revision, fork.revision);
    this.now = Math.max(this.now, fork.now);
    this.lives = Math.max(this.lives, fork.lives);
  }
}

/** Applies a fork's copy of a group; its workloads are applied with the entries. */
function applyGroupFork(mine: Group, changed: Group, blocks: AmountBlocks): void {
  if (!changed.sharesLists) {
    const lists = listsOf(mine);
    const other = changed as object as GroupLists;
    lists.reserved.applyFork(other.reserved);
    lists.pods.applyFork(other.pods);
  }
  const { workloads, reserved, pods, sharesLists, owner, chain } = mine;
  // The blocks of the fork are freed with the fork.
  const amounts = mine.layout === changed.layout ? mine.amounts : new GroupAmounts(changed.layout.keys.length, blocks);
  amounts.assign(changed.amounts);
  Object.assign(mine, { ...changed, amounts, workloads, reserved, pods, sharesLists, owner, chain });
}
