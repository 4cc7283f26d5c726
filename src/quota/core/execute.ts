import { refusal } from './admission/admission.js';
import { admit, releaseWorkload } from './workloads/admit.js';
import { runTimers } from './run-timers.js';
import type { Command } from './command.js';
import { unknownValue } from './command-shape.js';
import { LazyDecision, type Decision } from './admission/decision.js';
import { addGrant } from './loans/grants.js';
import { createGroup } from './groups/group-create.js';
import { deleteGroup, terminateGroup } from './groups/group-delete.js';
import { updateGroup } from './groups/group-update.js';
import { addLoan } from './loans/loans.js';
import { observe } from './workloads/observe.js';
import { dropPod, startPod, stopPod } from './pods/pods.js';
import { cancel, confirm, reserve } from './reservations/reserve.js';
import { checkHpa, scale } from './workloads/scale.js';
import type { QuotaState } from './state/state.js';
import { transfer } from './loans/transfer.js';

/** Advances the state to the time of a command; refuses an invalid time. */
export function arriveAt(state: QuotaState, now: number, actor: string | undefined): Decision | null {
  if (!Number.isSafeInteger(now) || now < 0)
    return refusal(state, 'InvalidTime', `invalid time ${now}; expected milliseconds since 1970`);
  if (now < state.now)
    state.emit({ type: 'clockSkew', group: '', reason: `command time ${now} is before ${state.now}` });
  else if (now > state.now) runTimers(state, now);
  state.actor = actor;
  return null;
}

/**
 * Executes a command at `now`, in milliseconds. Due timers run first, then the command is decided as a whole. A refusal
 * changes nothing. If `time` is before the time of the last command, the engine uses the time of the last command.
 */
export function execute(state: QuotaState, command: Command, now: number): Decision {
  const unknown = unknownValue(command);
  if (unknown !== null) return refusal(state, unknown.code, unknown.reason);
  const refused = arriveAt(state, now, command.actor);
  if (refused !== null) return refused;
  switch (command.type) {
    case 'admit':
      return admit(state, command, command.dryRun === true);
    case 'scale':
      return scale(state, command.workload, command.replicas, command.podSet, command.dryRun === true);
    case 'release':
      return releaseWorkload(state, command.workload);
    case 'observe':
      return observe(state, command);
    case 'checkHpa':
      return checkHpa(
        state,
        command.workload,
        command.maxReplicas,
        command.mode ?? 'advisory',
        command.dryRun === true,
      );
    case 'reserve':
      return reserve(state, command, command.ttlMs, command.operation);
    case 'confirm':
      return confirm(state, command.reservation);
    case 'cancel':
      return cancel(state, command.reservation, command.expiresBy);
    case 'podStarted':
      return startPod(state, { ...command, id: command.pod }, command.since ?? state.now);
    case 'podStopped':
      return stopPod(state, { ...command, id: command.pod, end: command.end ?? state.now });
    case 'podForgotten':
      return dropPod(state, command.pod);
    case 'createGroup':
      return createGroup(state, command);
    case 'updateGroup':
      return updateGroup(state, command);
    case 'deleteGroup':
      return deleteGroup(state, command.name, command.force === true);
    case 'terminateGroup':
      return terminateGroup(state, command.name);
    case 'grant':
      return addGrant(state, command);
    case 'loan':
      return addLoan(state, command);
    case 'transfer':
      return transfer(state, command);
    case 'tick':
      return new LazyDecision({ allowed: true, code: 'OK', revision: state.revision });
  }
}
