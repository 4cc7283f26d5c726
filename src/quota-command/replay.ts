import { type Command, type Decision, type GroupStatus, refKey, type EvaluationOptions } from '../quota/index.js';
import { cashTable, plainDecision, plainStatus, timeText, usageTable } from './report.js';
import { table } from './table.js';
import { readStep, type Step } from './script.js';

/** The engine that executes a script: in memory or with a store. */
export interface Player {
  readonly now: number;
  execute(command: Command, at: number): Decision | Promise<Decision>;
  status(name: string, at: number): GroupStatus | null;
  groups(): readonly string[];
}

/** The first error of a script, or null. A script is executed only if all its lines can be read. */
export async function scriptProblem(
  lines: AsyncIterable<string> | Iterable<string>,
  options: EvaluationOptions,
): Promise<string | null> {
  let number = 0;
  for await (const text of lines) {
    number++;
    if (isEmpty(text)) continue;
    const read = readStep(text, number, 0, options);
    if (!read.ok) return `line ${number}: ${read.reason}`;
  }
  return null;
}

/** Output format of decisions. */
export type Format = 'table' | 'json';

/**
 * Executes a script and writes the result of each line at once, as a row or a JSON object. Returns the number of
 * refusals.
 */
export async function replay(
  lines: AsyncIterable<string> | Iterable<string>,
  player: Player,
  format: Format,
  options: EvaluationOptions,
  write: (text: string) => void,
): Promise<number> {
  let number = 0;
  let now = player.now;
  let refused = 0;
  if (format === 'table') write(rowOf(['LINE', 'TIME', 'COMMAND', 'SUBJECT', 'DECISION', 'REASON']));
  for await (const text of lines) {
    number++;
    if (isEmpty(text)) continue;
    const read = readStep(text, number, now, options);
    if (!read.ok) throw new Error(`line ${number}: ${read.reason}`);
    now = read.step.at ?? now;
    refused += await play(read.step, now, player, format, write);
  }
  return refused;
}

async function play(
  step: Step,
  now: number,
  player: Player,
  format: Format,
  write: (text: string) => void,
): Promise<number> {
  const head = { line: step.line, at: timeText(now) };
  if (step.ask === 'status') {
    const statuses = statusesOf(player, step.group, now);
    if (format === 'table') write(`${step.line}  ${timeText(now)}  status\n${reportOf(statuses)}`);
    else write(`${JSON.stringify({ ...head, type: 'status', groups: statuses.map(plainStatus) })}\n`);
    return 0;
  }
  if (step.ask === 'nothing') {
    const { allowed, code, reason } = step;
    if (format === 'json') write(`${JSON.stringify({ ...head, type: 'admit', allowed, code, message: reason })}\n`);
    else write(rowOf([`${step.line}`, timeText(now), 'admit', '', allowed ? 'allowed' : 'REFUSED', reason]));
    return allowed ? 0 : 1;
  }
  const decision = await player.execute(step.command, now);
  const { type } = step.command;
  const subject = subjectOf(step.command);
  if (format === 'json') write(`${JSON.stringify({ ...head, type, subject, ...plainDecision(decision) })}\n`);
  else {
    const reason = decision.allowed
      ? decision.warnings.map(({ code, key }) => `${code}: ${key}`).join(', ')
      : decision.message;
    write(rowOf([`${step.line}`, timeText(now), type, subject, decision.allowed ? 'allowed' : 'REFUSED', reason]));
  }
  return decision.allowed ? 0 : 1;
}

/** Usage and budgets of groups at a time; of all groups without a name. */
export function statusesOf(
  player: Pick<Player, 'groups' | 'status'>,
  group: string | null,
  at: number,
): readonly GroupStatus[] {
  return (group === null ? player.groups() : [group]).flatMap((name) => player.status(name, at) ?? []);
}

/** Tables of usage and budgets. */
export function reportOf(statuses: readonly GroupStatus[]): string {
  return [usageTable(statuses), cashTable(statuses)].filter((text) => text !== '').join('\n') || table([['no groups']]);
}

function subjectOf(command: Command): string {
  switch (command.type) {
    case 'createGroup':
    case 'updateGroup':
    case 'deleteGroup':
    case 'terminateGroup':
      return command.name;
    case 'podStarted':
    case 'podStopped':
    case 'podForgotten':
      return command.pod;
    case 'confirm':
    case 'cancel':
      return command.reservation;
    case 'grant':
    case 'loan':
      return command.id;
    case 'transfer':
      return `${command.from} to ${command.to}`;
    case 'tick':
      return '';
    default:
      return refKey(command.workload);
  }
}

/** Rows are written one by one, so that widths are fixed; the last column is open. */
const WIDTHS = [5, 24, 14, 36, 8];

function rowOf(cells: readonly string[]): string {
  return `${cells
    .map((cell, column) => cell.padEnd(WIDTHS[column] ?? 0))
    .join('  ')
    .trimEnd()}\n`;
}

/** Empty lines and comments are skipped. */
function isEmpty(text: string): boolean {
  const trimmed = text.trim();
  return trimmed === '' || trimmed.startsWith('#');
}
