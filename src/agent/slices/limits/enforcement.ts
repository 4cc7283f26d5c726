/** Whether the limits of a container are enforced: its pod requests it and its node must allow it. Pure. */
import { ENFORCEMENT_KEY } from '../../../gpu/annotations.js';
import { valueFor } from './live-limits.js';

/** `none`: the control library passes every call on, and the audit compares use with the booked amounts. */
const ENFORCEMENTS = ['limits', 'none'] as const;

/** `problem`: why the annotation was refused; the limits are then enforced. */
export interface Enforcement {
  readonly unenforced: boolean;
  readonly problem: string | null;
}

/** Reads the annotation of a pod for one of its containers; `allowed`: the node has unenforced slices. */
export function readEnforcement(
  annotations: ReadonlyMap<string, string>,
  container: string,
  allowed: boolean,
): Enforcement {
  const whole = annotations.get(ENFORCEMENT_KEY);
  const word = (whole === undefined ? undefined : valueFor(whole, container)) ?? 'limits';
  if (!ENFORCEMENTS.some((known) => known === word))
    return refused(`${JSON.stringify(word.slice(0, 64))} is not limits or none`);
  if (word === 'none' && !allowed) return refused('this node has no unenforced slices (--allow-unenforced)');
  return { unenforced: word === 'none', problem: null };
}

function refused(why: string): Enforcement {
  return { unenforced: false, problem: `${ENFORCEMENT_KEY}: ${why}; the limits are enforced` };
}
