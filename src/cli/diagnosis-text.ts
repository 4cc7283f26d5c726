import type { Diagnosis } from '../agent/doctor/diagnosis.js';
import { printable } from './terminal-text.js';

/** The result of a check, on the node or in the cluster. */
export type Finding = Omit<Diagnosis, 'check'> & { readonly check: string };

const MARKS: Readonly<Record<Finding['state'], string>> = {
  ok: 'ok',
  warning: 'warning',
  failed: 'FAILED',
  skipped: 'skipped',
};

/** A line for the result, and one for the advice. */
export function diagnosisText({ check, state, what, advice }: Finding): string {
  const todo = advice === null ? '' : `${' '.repeat(24)}-> ${printable(advice)}\n`;
  return `${MARKS[state].padEnd(8)} ${check.padEnd(14)} ${printable(what)}\n${todo}`;
}
