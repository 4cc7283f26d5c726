import type { Change } from '../core/change.js';
import type { Command } from '../core/command.js';
import { chainOf } from '../core/pool.js';
import type { QuotaState } from '../core/state.js';
import type { Timer } from '../core/timers.js';
import { refKey } from '../core/workload.js';

/*
 * Names of what commands look at and change: groups, workloads, pods, loans, operations. Two commands without a common name can be decided
 * and committed at the same time.
 */

export const groupName = (group: string): string => `g ${group}`;
const workloadName = (key: string): string => `w ${key}`;
const podName = (id: string): string => `p ${id}`;
const loanName = (id: string): string => `l ${id}`;
const operationName = (id: string): string => `o ${id}`;

/** Gathers names, and with each what hangs on it as far as a state knows. */
class Footprint {
  readonly names = new Set<string>();
  readonly #state: QuotaState;

  constructor(state: QuotaState) {
    this.#state = state;
  }

  group(name: string | undefined): void {
    if (name === undefined || name === '') return;
    this.names.add(groupName(name));
    const group = this.#state.group(name);
    if (group === undefined || group.mode === 'carved') return;
    for (const above of chainOf(this.#state, group)) this.names.add(groupName(above.name));
  }

  /** A group and its parent: what a child has is the parent's matter. */
  withParent(name: string, parent: string | undefined): void {
    this.group(name);
    this.group(parent ?? this.#state.group(name)?.parent);
  }

  workload(key: string): void {
    this.names.add(workloadName(key));
    this.group(this.#state.workloads.get(key)?.group);
    for (const group of this.#state.reservedIn.get(key) ?? []) this.group(group);
  }

  operation(id: string): void {
    this.names.add(operationName(id));
    const reservation = this.#state.reservations.get(this.#state.operations.get(id) ?? '');
    if (reservation !== undefined) this.workload(reservation.workload);
  }

  pod(id: string): void {
    this.names.add(podName(id));
    for (const { group } of this.#state.pods.get(id)?.spans ?? []) this.group(group);
  }

  loan(id: string): void {
    this.names.add(loanName(id));
    const loan = this.#state.loans.get(id);
    this.group(loan?.lender);
    this.group(loan?.borrower);
  }
}

/** What a command is about, as far as a state can tell; carrying it out shows whether that was all. */
export function footprintOf(state: QuotaState, command: Command): ReadonlySet<string> {
  const print = new Footprint(state);
  switch (command.type) {
    case 'createGroup':
    case 'updateGroup':
      print.withParent(command.name, command.parent);
      break;
    case 'deleteGroup':
    case 'terminateGroup':
      print.withParent(command.name, undefined);
      break;
    case 'reserve':
      if (command.operation !== undefined) print.operation(command.operation);
      print.group(command.group);
      print.workload(refKey(command.workload));
      break;
    case 'admit':
    case 'observe':
      print.group(command.group);
      print.workload(refKey(command.workload));
      break;
    case 'release':
    case 'scale':
    case 'checkHpa':
      print.workload(refKey(command.workload));
      break;
    case 'confirm':
    case 'cancel':
      print.operation(command.reservation);
      break;
    case 'podStarted':
      print.pod(command.pod);
      print.group(command.group);
      print.workload(refKey(command.workload));
      break;
    case 'podStopped':
      print.pod(command.pod);
      break;
    case 'grant':
      print.group(command.group);
      break;
    case 'loan':
      print.loan(command.id);
      print.group(command.lender);
      print.group(command.borrower);
      break;
    case 'tick':
      break;
  }
  return print.names;
}

/** What something that is due is about; null where it does not apply any more. */
export function footprintOfTimer(state: QuotaState, { kind, subject, group }: Timer): ReadonlySet<string> | null {
  const print = new Footprint(state);
  if (kind === 'reservation') {
    if (!state.operations.has(subject)) return null;
    print.operation(subject);
  } else if (kind === 'podForgotten') {
    if (!state.pods.has(subject)) return null;
    print.pod(subject);
  } else if (kind === 'loanBegins' || kind === 'loanEnds') {
    if (!state.loans.has(subject)) return null;
    print.loan(subject);
  } else if (state.group(group) === undefined) return null;
  print.group(group);
  return print.names;
}

/** What was changed. */
export function footprintOfChanges(fork: QuotaState, changes: readonly Change[]): ReadonlySet<string> {
  const names = new Set(fork.changedNames().map(groupName));
  for (const change of changes) {
    if (change.group !== '') names.add(groupName(change.group));
    if (change.kind === 'workload') names.add(workloadName(change.key));
    else if (change.kind === 'pod') names.add(podName(change.key));
    else if (change.kind === 'loan') names.add(loanName(change.key));
    else if (change.kind === 'reservation' && change.value !== null) names.add(workloadName(change.value.workload));
  }
  return names;
}
