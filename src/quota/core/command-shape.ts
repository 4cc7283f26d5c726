import type { Command } from './command.js';
import type { Demand } from './admission/demand.js';
import type { Refusal } from './amounts/refusal.js';

/** The error of a value, such as `.podSets[0].count: expected a number, found a string`; null for a valid one. */
type Shape = (value: unknown) => string | null;

/** Fields of an object. Unknown fields are rejected, because a misspelt field would silently have no effect. */
type Fields = Readonly<Record<string, Shape>>;

const text: Shape = (value) => (typeof value === 'string' ? null : wrong('a string', value));
const number: Shape = (value) => (typeof value === 'number' ? null : wrong('a number', value));
const flag: Shape = (value) => (typeof value === 'boolean' ? null : wrong('true or false', value));
/** Any value: an invalid quantity is refused later, with the name of its key. */
const quantity: Shape = (value) => (value === undefined ? wrong('a quantity', value) : null);

function optional(shape: Shape): Shape {
  return (value) => (value === undefined ? null : shape(value));
}

function list(shape: Shape): Shape {
  return (value) => {
    if (!Array.isArray(value)) return wrong('a list', value);
    for (let index = 0; index < value.length; index++) {
      const problem = shape(value[index]);
      if (problem !== null) return `[${index}]${problem}`;
    }
    return null;
  };
}

function map(shape: Shape): Shape {
  return (value) => {
    if (!isObject(value)) return wrong('an object', value);
    for (const name in value) {
      const problem = shape(value[name]);
      if (problem !== null) return `.${name.slice(0, 80)}${problem}`;
    }
    return null;
  };
}

function object(fields: Fields): Shape {
  const required = Object.keys(fields).filter((name) => fields[name]?.(undefined) !== null);
  return (value) => {
    if (!isObject(value)) return wrong('an object', value);
    for (const name in value) {
      const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (shape === undefined) {
        if (value[name] !== undefined) return `.${name.slice(0, 80)}: unknown field`;
        continue;
      }
      const problem = shape(value[name]);
      if (problem !== null) return `.${name}${problem}`;
    }
    for (const name of required) if (value[name] === undefined) return `.${name}: required field is missing`;
    return null;
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrong(expected: string, found: unknown): string {
  const is = found === null ? 'null' : Array.isArray(found) ? 'a list' : `a value of type ${typeof found}`;
  return `: expected ${expected}, found ${is}`;
}

const quantities = map(quantity);
/** An unknown mode or name is refused by value, not by shape: see `choiceProblem`. */
const choice: Shape = () => null;

const workload = object({
  kind: text,
  namespace: optional(text),
  name: text,
  uid: optional(text),
  version: optional(number),
});
const podSet = object({
  name: optional(text),
  count: number,
  requests: optional(quantities),
  limits: optional(quantities),
  unspecified: optional(list(text)),
});
const demandFields = {
  workload,
  group: text,
  types: optional(map(text)),
  podSets: list(podSet),
  objects: optional(text),
};
const demand = object(demandFields);
const nullable =
  (shape: Shape): Shape =>
  (value) =>
    value === null ? null : shape(value);
const asked = { type: text, actor: optional(text) };
const moment: Shape = (value) =>
  typeof value === 'string' || typeof value === 'number' ? null : wrong('a time or a duration', value);
const groupGrant = object({
  name: text,
  key: text,
  amount: quantity,
  persons: optional(number),
  from: optional(moment),
  every: optional(moment),
  expiresAfter: optional(moment),
  until: optional(moment),
  mode: choice,
  carryOver: optional(quantity),
});
const groupLoan = object({ name: text, to: text, amounts: quantities, from: optional(moment), until: moment });
const limits = {
  mode: choice,
  borrow: optional(quantities),
  lend: optional(quantities),
  grants: optional(list(groupGrant)),
  loans: optional(list(groupLoan)),
};

const COMMANDS: Readonly<Record<Command['type'], Shape>> = {
  createGroup: object({ ...asked, ...limits, name: choice, parent: optional(text), hard: quantities }),
  updateGroup: object({
    ...asked,
    ...limits,
    name: choice,
    parent: optional(text),
    hard: optional(quantities),
    force: optional(flag),
    reserve: optional(object({ generation: number, ttlMs: number })),
    observed: optional(number),
  }),
  deleteGroup: object({ ...asked, name: choice, force: optional(flag) }),
  terminateGroup: object({ ...asked, name: choice }),
  admit: object({ ...asked, ...demandFields, dryRun: optional(flag) }),
  reserve: object({ ...asked, ...demandFields, ttlMs: number, operation: optional(text) }),
  confirm: object({ ...asked, reservation: text }),
  cancel: object({ ...asked, reservation: text, expiresBy: optional(number) }),
  observe: object({ ...asked, workload, group: text, demand: nullable(demand) }),
  release: object({ ...asked, workload }),
  scale: object({ ...asked, workload, replicas: number, podSet: optional(text), dryRun: optional(flag) }),
  checkHpa: object({ ...asked, workload, maxReplicas: number, mode: choice, dryRun: optional(flag) }),
  podStarted: object({
    ...asked,
    pod: text,
    workload,
    since: optional(number),
    podSet: optional(text),
    group: optional(text),
    types: optional(map(text)),
    requests: optional(quantities),
    limits: optional(quantities),
  }),
  podStopped: object({
    ...asked,
    pod: text,
    end: optional(number),
    group: optional(text),
    uncertainUntil: optional(number),
    retain: optional(flag),
  }),
  podForgotten: object({ ...asked, pod: text }),
  grant: object({
    ...asked,
    id: text,
    group: text,
    key: text,
    amount: quantity,
    validFrom: optional(number),
    expiresAt: optional(number),
    mode: choice,
    carryOverMax: optional(quantity),
    everyMs: optional(number),
  }),
  loan: object({
    ...asked,
    id: text,
    lender: text,
    borrower: text,
    amounts: quantities,
    validFrom: optional(number),
    until: number,
  }),
  transfer: object({ ...asked, from: text, to: text, amounts: quantities }),
  tick: object(asked),
};

const MODES: Readonly<Partial<Record<Command['type'], readonly string[]>>> = {
  createGroup: ['carved', 'elastic'],
  updateGroup: ['carved', 'elastic'],
  checkHpa: ['advisory', 'reserve'],
  grant: ['topup', 'reset'],
};

/** An invalid command from JavaScript; TypeScript would reject it. */
export class ShapeError extends TypeError {
  override readonly name = 'ShapeError';
}

/**
 * Throws a `ShapeError` with the name of the field if a command does not have the shape of its type: an error of the
 * calling program. `unknownValue` checks values of the right shape.
 */
export function checkShape(command: Command): void {
  const given: unknown = command;
  if (!isObject(given)) throw new ShapeError(`a command${wrong('an object', given)}`);
  const { type } = given;
  const shape = typeof type === 'string' && Object.hasOwn(COMMANDS, type) ? COMMANDS[type as Command['type']] : null;
  const problem = shape?.(given) ?? null;
  if (problem !== null) throw new ShapeError(`${String(type)}: ${problem.slice(1)}`);
}

/** Throws a `ShapeError` if a demand does not have the right shape. */
export function checkDemand(given: Demand, of: 'admit' | 'explain'): void {
  const problem = demand(given);
  if (problem !== null)
    throw new ShapeError(`${of}${problem.startsWith(':') ? '' : ': '}${problem.replace(/^\./, '')}`);
}

/** Throws a `ShapeError` for an option that does not exist: a misspelt one would silently have no effect. */
export function checkOptions(of: string, given: unknown, known: readonly string[]): void {
  if (given === undefined) return;
  if (!isObject(given)) throw new ShapeError(`${of}: options${wrong('an object', given)}`);
  for (const name of Object.keys(given))
    if (!known.includes(name))
      throw new ShapeError(`${of}: unknown option "${name.slice(0, 80)}"; expected one of ${known.join(', ')}`);
}

/** Why a command with the right shape has an invalid value; null if it is valid. */
export function unknownValue(command: Command): Pick<Refusal, 'code' | 'reason'> | null {
  const { type } = command as { readonly type: unknown };
  if (typeof type !== 'string' || !Object.hasOwn(COMMANDS, type))
    return {
      code: 'InvalidCommand',
      reason: `unknown command ${shown(type)}; expected one of ${Object.keys(COMMANDS).join(', ')}`,
    };
  const { name, mode } = command as { readonly name?: unknown; readonly mode?: unknown };
  const modes = MODES[type as Command['type']];
  if (modes !== undefined && mode !== undefined && !(modes as readonly unknown[]).includes(mode))
    return { code: 'InvalidMode', reason: `unknown mode ${shown(mode)}; expected one of ${modes.join(', ')}` };
  const isNamed = ['createGroup', 'updateGroup', 'deleteGroup', 'terminateGroup'].includes(type);
  if (isNamed && typeof name !== 'string')
    return { code: 'InvalidName', reason: `name: expected a string, found ${shown(name)}` };
  return null;
}

function shown(value: unknown): string {
  if (typeof value === 'object') return value === null ? 'null' : 'an object';
  return typeof value === 'string' || typeof value === 'number' ? `"${value.toString().slice(0, 80)}"` : typeof value;
}
