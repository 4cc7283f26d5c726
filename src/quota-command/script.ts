import * as z from 'zod';
import {
  type Command,
  readDuration,
  readMoment,
  refOfKey,
  evaluate,
  type EvaluationOptions,
} from '../quota/internal.js';
import { grant, loan } from './tree-file.js';

/** A line of a script: a command for the engine, or a query. */
export type Step =
  | { readonly line: number; readonly at: number | null; readonly ask: 'command'; readonly command: Command }
  /** A manifest that is not charged itself, or cannot be read. */
  | {
      readonly line: number;
      readonly at: number | null;
      readonly ask: 'nothing';
      readonly allowed: boolean;
      readonly code: string;
      readonly reason: string;
    }
  | { readonly line: number; readonly at: number | null; readonly ask: 'status'; readonly group: string | null };

export type ReadStep =
  { readonly ok: true; readonly step: Step } | { readonly ok: false; readonly line: number; readonly reason: string };

/** Longer lines are rejected without parsing. */
const MAX_LINE = 1 << 20;

const quantities = z.record(z.string(), z.union([z.string(), z.number()]));
const reference = z.strictObject({
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  uid: z.string().optional(),
});
/** An object, or the text `kind/namespace/name` or `kind/name`. */
const workload = z.union([
  reference,
  z.string().transform((text) => {
    const parts = text.split('/');
    return refOfKey(parts.length === 2 ? `${parts[0]}//${parts[1]}` : text);
  }),
]);
const types = z.record(z.string(), z.string());
const time = z.union([z.number(), z.string()]);
const podSet = z.strictObject({
  name: z.string().optional(),
  count: z.number(),
  requests: quantities.optional(),
  limits: quantities.optional(),
});
const mode = z.enum(['carved', 'elastic']);
const common = { at: time.optional(), actor: z.string().optional() };
const demand = {
  ...common,
  workload,
  group: z.string(),
  types: types.optional(),
  podSets: z.array(podSet),
  objects: z.string().optional(),
};
const group = {
  hard: quantities,
  mode: mode.optional(),
  borrow: quantities.optional(),
  lend: quantities.optional(),
  grants: z.array(grant).optional(),
  loans: z.array(loan).optional(),
};

const COMMANDS = {
  createGroup: z.strictObject({ ...common, name: z.string(), parent: z.string().optional(), ...group }),
  updateGroup: z.strictObject({
    ...common,
    name: z.string(),
    parent: z.string().optional(),
    ...group,
    hard: quantities.optional(),
    force: z.boolean().optional(),
  }),
  deleteGroup: z.strictObject({ ...common, name: z.string(), force: z.boolean().optional() }),
  terminateGroup: z.strictObject({ ...common, name: z.string() }),
  admit: z.union([
    z.strictObject({ ...demand, dryRun: z.boolean().optional() }),
    z.strictObject({ ...common, manifest: z.record(z.string(), z.unknown()), dryRun: z.boolean().optional() }),
  ]),
  reserve: z.strictObject({ ...demand, ttlMs: z.number(), operation: z.string().optional() }),
  confirm: z.strictObject({ ...common, reservation: z.string() }),
  cancel: z.strictObject({ ...common, reservation: z.string() }),
  release: z.strictObject({ ...common, workload }),
  scale: z.strictObject({
    ...common,
    workload,
    replicas: z.number(),
    podSet: z.string().optional(),
    dryRun: z.boolean().optional(),
  }),
  checkHpa: z.strictObject({
    ...common,
    workload,
    maxReplicas: z.number(),
    mode: z.enum(['advisory', 'reserve']).optional(),
    dryRun: z.boolean().optional(),
  }),
  podStarted: z.strictObject({
    ...common,
    pod: z.string(),
    workload,
    since: time.optional(),
    podSet: z.string().optional(),
    group: z.string().optional(),
    types: types.optional(),
    requests: quantities.optional(),
    limits: quantities.optional(),
  }),
  podStopped: z.strictObject({
    ...common,
    pod: z.string(),
    end: time.optional(),
    group: z.string().optional(),
    uncertainUntil: time.optional(),
    retain: z.boolean().optional(),
  }),
  podForgotten: z.strictObject({ ...common, pod: z.string() }),
  grant: z.strictObject({
    ...common,
    id: z.string(),
    group: z.string(),
    key: z.string(),
    amount: z.union([z.string(), z.number()]),
    validFrom: time.optional(),
    expiresAt: time.optional(),
    mode: z.enum(['topup', 'reset']).optional(),
    carryOverMax: z.union([z.string(), z.number()]).optional(),
    everyMs: z.number().optional(),
  }),
  loan: z.strictObject({
    ...common,
    id: z.string(),
    lender: z.string(),
    borrower: z.string(),
    amounts: quantities,
    validFrom: time.optional(),
    until: time,
  }),
  transfer: z.strictObject({ ...common, from: z.string(), to: z.string(), amounts: quantities }),
  tick: z.strictObject(common),
  status: z.strictObject({ ...common, group: z.string().optional() }),
} as const;

type Type = keyof typeof COMMANDS;

/**
 * Reads one line of a script: `{"type": "admit", "at": "2026-01-01T08:00:00Z", ...}`. A time is in milliseconds or ISO
 * 8601, or relative to `previous` (`+90s`). `admit` accepts a `manifest` instead of a demand.
 */
export function readStep(text: string, line: number, previous: number, options: EvaluationOptions): ReadStep {
  const refuse = (reason: string): ReadStep => ({ ok: false, line, reason });
  if (text.length > MAX_LINE) return refuse(`longer than ${MAX_LINE} characters`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return refuse(`not JSON: ${(error as Error).message}`);
  }
  if (typeof json !== 'object' || json === null || !('type' in json))
    return refuse('expected a JSON object with a type');
  const { type, ...fields } = json;
  if (typeof type !== 'string' || !Object.hasOwn(COMMANDS, type))
    return refuse(
      `unknown type ${JSON.stringify(type).slice(0, 80)}; expected one of ${Object.keys(COMMANDS).join(', ')}`,
    );
  const schema: z.ZodType<object> = COMMANDS[type as Type];
  const parsed = schema.safeParse(fields);
  if (!parsed.success) return refuse(parsed.error.issues.map(messageOf).join('; '));
  const timed = withTimes({ ...parsed.data }, previous);
  if (!timed.ok) return refuse(timed.reason);
  return { ok: true, step: stepOf(line, type as Type, timed.fields, timed.at, options) };
}

function stepOf(
  line: number,
  type: Type,
  fields: Readonly<Record<string, unknown>>,
  at: number | null,
  options: EvaluationOptions,
): Step {
  if (type === 'status')
    return { line, at, ask: 'status', group: typeof fields['group'] === 'string' ? fields['group'] : null };
  // The schema of a type describes its command.
  if (fields['manifest'] === undefined)
    return { line, at, ask: 'command', command: { ...fields, type } as unknown as Command };
  const evaluation = evaluate(fields['manifest'], options);
  if (!evaluation.ok)
    return { line, at, ask: 'nothing', allowed: false, code: evaluation.code, reason: evaluation.reason };
  if (evaluation.demand === null)
    return { line, at, ask: 'nothing', allowed: true, code: 'NotManaged', reason: evaluation.reason };
  const { manifest: _, ...rest } = fields;
  const command = evaluation.isTerminal
    ? { ...rest, type: 'release', workload: evaluation.demand.workload }
    : { ...rest, type: 'admit', ...evaluation.demand };
  return { line, at, ask: 'command', command: command as Command };
}

type Times =
  | { readonly ok: true; readonly fields: Readonly<Record<string, unknown>>; readonly at: number | null }
  | { readonly ok: false; readonly reason: string };

function withTimes({ at, ...fields }: Record<string, unknown>, previous: number): Times {
  const now = at === undefined ? null : timeOf(at, previous);
  if (now !== null && Number.isNaN(now))
    return { ok: false, reason: `at: ${JSON.stringify(at)} is not a time; expected milliseconds, ISO 8601 or +90s` };
  for (const name of ['since', 'end', 'validFrom', 'expiresAt', 'until']) {
    if (fields[name] === undefined) continue;
    const read = timeOf(fields[name], now ?? previous);
    if (Number.isNaN(read))
      return {
        ok: false,
        reason: `${name}: ${JSON.stringify(fields[name])} is not a time; expected milliseconds, ISO 8601 or +90s`,
      };
    fields[name] = read;
  }
  return { ok: true, fields, at: now };
}

function timeOf(written: unknown, previous: number): number {
  if (typeof written === 'number') return written;
  return typeof written === 'string' && written.startsWith('+')
    ? previous + readDuration(written.slice(1))
    : readMoment(written);
}

function messageOf(issue: z.core.$ZodIssue): string {
  return `${issue.path.join('.') || 'the line'}: ${issue.message}`;
}
