import type { Change } from '../core/state/change.js';
import type { Command } from '../core/command.js';
import type { QuotaState } from '../core/state/state.js';
import type { Timer } from '../core/state/timers.js';
import { refKey } from '../core/state/workload.js';

/**
 * Conflict keys: names of the groups, workloads, pods, loans and operations that a command reads or changes. Two
 * commands without a common key can be decided and committed concurrently.
 */

export const groupKey = (group: string): string => `g ${group}`;
const workloadKey = (key: string): string => `w ${key}`;
const podKey = (id: string): string => `p ${id}`;
const loanKey = (id: string): string => `l ${id}`;
const operationKey = (id: string): string => `o ${id}`;

/** Collects keys, with the related keys that the state knows. */
class ConflictKeys {
  readonly keys = new Set<string>();
  readonly #state: QuotaState;

  constructor(state: QuotaState) {
    this.#state = state;
  }

  group(name: string | undefined): void {
    if (name === undefined || name === '') return;
    this.keys.add(groupKey(name));
    const group = this.#state.group(name);
    if (group === undefined || group.mode === 'carved') return;
    for (const above of this.#state.chainOf(group).groups) this.keys.add(groupKey(above.name));
  }

  /** A group and its parent: a child's quota is charged to the parent. */
  withParent(name: string, parent: string | undefined): void {
    this.group(name);
    this.group(parent ?? this.#state.group(name)?.parent);
  }

  workload(key: string): void {
    this.keys.add(workloadKey(key));
    this.group(this.#state.workloads.get(key)?.group);
    for (const group of this.#state.reservedIn.get(key) ?? []) this.group(group);
  }

  operation(id: string): void {
    this.keys.add(operationKey(id));
    const reservation = this.#state.reservations.get(this.#state.operations.get(id) ?? '');
    if (reservation !== undefined) this.workload(reservation.workload);
  }

  pod(id: string): void {
    this.keys.add(podKey(id));
    const pod = this.#state.pods.get(id);
    for (const { group } of pod?.spans ?? []) this.group(group);
    this.group(pod?.group);
  }

  loan(id: string): void {
    this.keys.add(loanKey(id));
    const loan = this.#state.loans.get(id);
    this.group(loan?.lender);
    this.group(loan?.borrower);
  }
}

/** The expected keys of a command; executing it shows whether there are more. */
export function conflictKeysOf(state: QuotaState, command: Command): ReadonlySet<string> {
  const keys = new ConflictKeys(state);
  switch (command.type) {
    case 'createGroup':
    case 'updateGroup':
      keys.withParent(command.name, command.parent);
      break;
    case 'deleteGroup':
    case 'terminateGroup':
      keys.withParent(command.name, undefined);
      break;
    case 'reserve':
      if (command.operation !== undefined) keys.operation(command.operation);
      keys.group(command.group);
      keys.workload(refKey(command.workload));
      break;
    case 'admit':
    case 'observe':
      keys.group(command.group);
      keys.workload(refKey(command.workload));
      break;
    case 'release':
    case 'scale':
    case 'checkHpa':
      keys.workload(refKey(command.workload));
      break;
    case 'confirm':
    case 'cancel':
      keys.operation(command.reservation);
      break;
    case 'podStarted':
      keys.pod(command.pod);
      keys.group(command.group);
      keys.workload(refKey(command.workload));
      break;
    case 'podStopped':
      keys.pod(command.pod);
      keys.group(command.group);
      break;
    case 'podForgotten':
      keys.pod(command.pod);
      break;
    case 'grant':
      keys.group(command.group);
      break;
    case 'loan':
      keys.loan(command.id);
      keys.group(command.lender);
      keys.group(command.borrower);
      break;
    case 'transfer':
      keys.group(command.from);
      keys.group(command.to);
      break;
    case 'tick':
      break;
  }
  return keys.keys;
}

/** The keys of a due timer; null if it no longer applies. */
export function conflictKeysOfTimer(state: QuotaState, { kind, subject, group }: Timer): ReadonlySet<string> | null {
  const keys = new ConflictKeys(state);
  if (kind === 'reservation') {
    if (!state.operations.has(subject)) return null;
    keys.operation(subject);
  } else if (kind === 'podForgotten') {
    if (!state.pods.has(subject)) return null;
    keys.pod(subject);
  } else if (kind === 'loanBegins' || kind === 'loanEnds') {
    if (!state.loans.has(subject)) return null;
    keys.loan(subject);
  } else if (state.group(group) === undefined) return null;
  keys.group(group);
  // A grant changes the budget of the parent too. A timer that found this out only when it ran would run late.
  if (kind === 'grantBegins' || kind === 'grantEnds') keys.group(state.group(group)?.parent);
  return keys.keys;
}

/** The keys of changed records. */
export function conflictKeysOfChanges(fork: QuotaState, changes: readonly Change[]): ReadonlySet<string> {
  const keys = new Set(fork.changedNames().map(groupKey));
  for (const change of changes) {
    if (change.group !== '') keys.add(groupKey(change.group));
    if (change.kind === 'workload') keys.add(workloadKey(change.key));
    else if (change.kind === 'pod') keys.add(podKey(change.key));
    else if (change.kind === 'loan') keys.add(loanKey(change.key));
    else if (change.kind === 'reservation' && change.value !== null) keys.add(workloadKey(change.value.workload));
  }
  return keys;
}
