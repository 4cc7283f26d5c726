import { bareGroup, listsOf, type Group } from '../state/group.js';
import { CASH } from '../../../manifests/key.js';
import type { Change } from '../state/change.js';
import { flowOf } from '../admission/cohort.js';
import { groupOfPod } from '../state/pod.js';
import { scheduleThreshold } from '../pods/threshold.js';
import type { Policy } from '../state/policy.js';
import { childCashOf, selfUsedOf } from '../admission/recompute.js';
import { amountOfDigits } from '../amounts/digits.js';
import type { GroupRecord, StoredRecord } from './record.js';
import {
  readBudgets,
  readDeclared,
  readLimitReservation,
  readCandidates,
  readLoan,
  restorePod,
  readWorkload,
} from './record-format.js';
import { ShapeDictionary } from './shape-dictionary.js';
import { QuotaState } from '../state/state.js';
import { isLater } from '../state/workload.js';

/** The part of a state that is not in its records. */
export interface StateHead {
  readonly revision: number;
  readonly now: number;
  readonly lives: number;
}

const WORKLOADS_PER_STEP = 4096;

/** The later of two heads of one state. */
export function latestHead(a: StateHead, b: StateHead): StateHead {
  return { revision: Math.max(a.revision, b.revision), now: Math.max(a.now, b.now), lives: Math.max(a.lives, b.lives) };
}

/**
 * Builds a state from records; later records replace earlier ones. `finish` computes the counters and schedules the
 * timers. Records written with one ShapeDictionary must be added in the same order, between calls of `newDictionary`.
 */
export class Restorer {
  readonly #state: QuotaState;
  readonly #groups = new Map<string, GroupRecord>();
  #dictionary = new ShapeDictionary();

  constructor(policy: Policy) {
    this.#state = new QuotaState(policy);
  }

  /** Called before the records of another file. */
  newDictionary(): void {
    this.#dictionary = new ShapeDictionary();
  }

  add(record: StoredRecord): void {
    const { key, value } = record;
    const state = this.#state;
    switch (record.kind) {
      case 'group':
        if (record.value === null) this.#groups.delete(key);
        else this.#groups.set(key, record.value);
        return;
      case 'workload':
        if (record.value === null) state.workloads.delete(key);
        else {
          const workload = readWorkload(key, record.group, record.value, this.#dictionary, state.shapes);
          const known = state.workloads.get(key);
          if (known === undefined || known.group === record.group || !isLater(known, workload))
            state.workloads.set(key, workload);
        }
        return;
      case 'pod':
        if (record.value === null) state.pods.delete(key);
        else state.pods.set(key, restorePod(key, record.value, this.#dictionary, state.shapes));
        return;
      case 'reservation':
        if (record.value === null) state.reservations.delete(key);
        else {
          const candidates = readCandidates(record.group, record.value, this.#dictionary, state.shapes);
          state.reservations.set(key, { key, workload: record.value.workload, group: record.group, candidates });
        }
        return;
      case 'loan':
        if (value === null || record.value === null) state.loans.delete(key);
        else state.loans.set(key, readLoan(key, record.value));
    }
  }

  /** Returns the state after all records were added. */
  finish(head: StateHead): QuotaState {
    const steps = this.finishing(head);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  /** The same; yields after some thousand workloads, for callers that leave the event loop to others. */
  *finishing(head: StateHead): Generator<void, QuotaState> {
    const state = this.#state;
    Object.assign(state, head);
    this.#addGroups();
    let count = 0;
    for (const [, workload] of state.workloads.entries()) {
      const group = state.group(workload.group);
      if (group !== undefined) listsOf(group).workloads.enter(workload, null);
      if (++count % WORKLOADS_PER_STEP === 0) yield;
    }
    for (const [, reservation] of [...state.reservations.entries()]) {
      const group = state.group(reservation.group);
      if (group === undefined) continue;
      state.putReservation(group, reservation.workload, reservation.candidates);
      for (const { id, expiresAt } of reservation.candidates)
        state.timers.push({ at: expiresAt, kind: 'reservation', subject: id, group: group.name });
    }
    this.#addPods();
    yield;
    yield* this.#count();
    this.#addDates();
    return state;
  }

  /** Adds parents before children. */
  #addGroups(): void {
    const children = new Map<Group, string[]>();
    const add = (name: string, record: GroupRecord): Group => {
      const known = this.#state.group(name);
      if (known !== undefined) return known;
      const above = this.#groups.get(record.parent);
      const parent = above === undefined ? undefined : add(record.parent, above);
      const group = groupOf(this.#state, name, record, parent === undefined ? 0 : parent.depth + 1);
      this.#state.add(group);
      if (parent !== undefined) {
        const names = children.get(parent);
        if (names === undefined) children.set(parent, [name]);
        else names.push(name);
      }
      return group;
    };
    for (const [name, record] of this.#groups) add(name, record);
    for (const [parent, names] of children) parent.children = names;
  }

  #addPods(): void {
    const { pods, timers, policy, now } = this.#state;
    pods.forEach((pod, id) => {
      const last = pod.spans.at(-1);
      const group = last === undefined ? undefined : this.#state.group(last.group);
      if (pod.isRetained === true) return;
      if (pod.end !== Infinity)
        timers.push({ at: now + policy.lateEventsMs, kind: 'podForgotten', subject: id, group: '' });
      else if (group !== undefined && group.life === last?.life) listsOf(group).pods.set(id, true);
    });
  }

  /** Computes from the leaves to the roots, because lending and spilling of children count in their parents. */
  *#count(): Generator<void> {
    const state = this.#state;
    const groups = [...state.groups.entries()].map(([, group]) => group).sort((a, b) => b.depth - a.depth);
    for (const group of groups) {
      const parent = group.parent === '' ? undefined : state.group(group.parent);
      selfUsedOf(state, group).forEach((amount, slot) => group.amounts.setSelfUsed(slot, amount));
      for (const budget of group.budgets) if (budget.listed) budget.childSum = childCashOf(state, group, budget.key);
      group.layout.keys.forEach((key, slot) => {
        group.amounts.derive(slot, group.mode === 'elastic');
        const above = parent?.layout.slots.get(key);
        if (parent === undefined || above === undefined) return;
        const { lends, spills } = flowOf(group, slot);
        parent.amounts.addChildSum(above, group.amounts.hard(slot));
        parent.amounts.addLent(above, lends);
        parent.amounts.addSpilled(above, spills);
      });
      yield;
    }
    state.structure++;
  }

  #addDates(): void {
    const { timers } = this.#state;
    this.#state.groups.forEach((group) => {
      for (const budget of group.budgets) {
        scheduleThreshold(this.#state, group, budget);
        for (const { id, left, validFrom, expiresAt } of budget.grants) {
          if (left === null) timers.push({ at: validFrom, kind: 'grantBegins', subject: id, group: group.name });
          else if (expiresAt !== Infinity)
            timers.push({ at: expiresAt, kind: 'grantEnds', subject: id, group: group.name });
        }
      }
    });
    this.#state.loans.forEach((loan, id) => {
      if (loan.state === 'pending')
        timers.push({ at: loan.validFrom, kind: 'loanBegins', subject: id, group: loan.borrower });
      else if (loan.state === 'running')
        timers.push({ at: loan.until, kind: 'loanEnds', subject: id, group: loan.borrower });
    });
  }
}

/** All records of a state, parents before their children; generated on demand. */
export function* recordsOf(state: QuotaState): Generator<Change> {
  const groups = [...state.groups.entries()].map(([, group]) => group).sort((a, b) => a.depth - b.depth);
  for (const group of groups) yield { kind: 'group', key: group.name, group: group.name, value: group };
  for (const [key, value] of state.workloads.entries()) yield { kind: 'workload', key, group: value.group, value };
  for (const [key, value] of state.reservations.entries())
    yield { kind: 'reservation', key, group: value.group, value };
  for (const [key, value] of state.pods.entries()) yield { kind: 'pod', key, group: groupOfPod(value), value };
  for (const [key, value] of state.loans.entries()) yield { kind: 'loan', key, group: value.borrower, value };
}

function groupOf(state: QuotaState, name: string, record: GroupRecord, depth: number): Group {
  const budgets = readBudgets(record.budgets);
  const cash = budgets.filter(({ listed }) => listed).map(({ key }) => CASH + key);
  const layout = state.layouts.layoutOf([...record.hard.map(([key]) => key), ...cash]);
  const group = bareGroup(name, record.life, record.parent, depth, layout, state.blocks);
  record.hard.forEach(([, amount], slot) => group.amounts.setHard(slot, amountOfDigits(amount)));
  layout.keys.forEach((_, slot) =>
    group.amounts.setLimits(
      slot,
      amountOfDigits(record.lend[slot] ?? null),
      amountOfDigits(record.borrow[slot] ?? null),
    ),
  );
  return Object.assign(group, {
    mode: record.mode,
    terminating: record.terminating,
    limitReservation: readLimitReservation(record),
    declared: readDeclared(record),
    budgets,
  });
}
