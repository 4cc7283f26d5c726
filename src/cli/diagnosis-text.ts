import type { Diagnosis } from '../agent/doctor/diagnosis.js';
import { printable } from './terminal-text.js';

/** The result of a check, on the node or in the cluster. */
export type CheckResult = Omit<Diagnosis, 'check'> & { readonly check: string };

const MARKS: Readonly<Record<CheckResult['state'], string>> = {
  ok: 'ok',
  warning: 'warning',
  failed: 'FAILED',
  skipped: 'skipped',
};

/** One line for all checks: `2 checks FAILED, 1 warning, 12 ok`. */
export function resultText(findings: readonly CheckResult[]): string {
  const count = (state: CheckResult['state']): number => findings.filter((finding) => finding.state === state).length;
  const [failed, warnings, ok, skipped] = [count('failed'), count('warning'), count('ok'), count('skipped')];
  return [
    failed === 0 ? 'no check failed' : `${failed} ${failed === 1 ? 'check' : 'checks'} FAILED`,
    ...(warnings === 0 ? [] : [`${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`]),
    `${ok} ok`,
    ...(skipped === 0 ? [] : [`${skipped} skipped`]),
  ].join(', ');
}

/** A line for the result, and one for the advice. */
export function diagnosisText({ check, state, what, advice }: CheckResult): string {
  const todo = advice === null ? '' : `${' '.repeat(24)}-> ${printable(advice)}\n`;
  return `${MARKS[state].padEnd(8)} ${check.padEnd(14)} ${printable(what)}\n${todo}`;
}
