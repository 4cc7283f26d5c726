import { readGrants, type DeclaredGrant, type GroupGrant } from './declared-grant.js';
import { readLoans, type DeclaredLoan, type GroupLoan } from './declared-loan.js';
import { MAX_QUANTITY, amountOf, type Amount } from '../../../manifests/amount.js';
import { keyProblem, cashTarget, type Key } from '../../../manifests/key.js';
import type { Mode } from './group.js';
import { HOUR_MS, readQuantity, type Parsed, type Quantity } from '../../../manifests/quantity.js';
import type { Refusal } from '../amounts/refusal.js';

/**
 * Quantities by key: { 'limits.cpu': 10, 'cash/limits.cpu': '100', 'requests.nvidia.com/gpu.A30': 2 }. Cash is in
 * unit-hours.
 */
export type Hard = Readonly<Record<Key, Quantity>>;

/** The specification of a group. */
export interface GroupSpec {
  readonly name: string;
  /** Empty or absent for a root; immutable. */
  readonly parent?: string | undefined;
  readonly hard: Hard;
  /** Default: `carved`. */
  readonly mode?: Mode | undefined;
  /** Elastic: maximum usage beyond the own pool, by key; no limit for a missing key. */
  readonly borrow?: Hard | undefined;
  /** Elastic: maximum amount of the own pool that others may use, by key; no limit for a missing key. */
  readonly lend?: Hard | undefined;
  /** Grants of budgets at given times. */
  readonly grants?: readonly GroupGrant[] | undefined;
  /** Temporary loans to siblings. `hard` is the quota without loans. */
  readonly loans?: readonly GroupLoan[] | undefined;
}

/** A specification with parsed quantities. */
export interface ReadSpec {
  readonly ok: true;
  readonly hard: ReadonlyMap<Key, Amount>;
  /** Budgets by the key that is charged by the hour; in base units times milliseconds. */
  readonly cash: ReadonlyMap<Key, bigint>;
  readonly mode: Mode;
  readonly borrow: ReadonlyMap<Key, Amount>;
  readonly lend: ReadonlyMap<Key, Amount>;
  /** Absent to keep the declared grants. */
  readonly grants?: readonly DeclaredGrant[];
  /** Absent to keep the declared loans. */
  readonly loans?: readonly DeclaredLoan[];
}

const MAX_KEYS = 1000;

/** Why a name is not allowed for a group, or null. Workloads name their group in the value of a label. */
export function nameProblem(name: string): string | null {
  if (/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) return null;
  return `"${name.slice(0, 80)}" is not a group name; expected a label value of at most 63 characters`;
}

/** Parses the quantities of a specification. */
export function readSpec(spec: Omit<GroupSpec, 'name' | 'parent'>): ReadSpec | Refusal {
  const all = readKeys(spec.hard);
  if (!all.ok) return all;
  const hard = new Map<Key, Amount>();
  const cash = new Map<Key, bigint>();
  for (const [key, amount] of all.amounts) {
    const target = cashTarget(key);
    if (target === null) hard.set(key, amount);
    else cash.set(target, BigInt(amount) * (typeof spec.hard[key] === 'bigint' ? 1n : HOUR_MS));
  }
  const mode = spec.mode ?? 'carved';
  const borrow = readLimits(spec.borrow, hard, mode, 'borrow');
  if (!borrow.ok) return borrow;
  const lend = readLimits(spec.lend, hard, mode, 'lend');
  if (!lend.ok) return lend;
  const grants = spec.grants === undefined ? null : readGrants(spec.grants, cash);
  if (grants?.ok === false) return grants;
  const loans = spec.loans === undefined ? null : readLoans(spec.loans);
  if (loans?.ok === false) return loans;
  return {
    ok: true,
    hard,
    cash,
    mode,
    borrow: borrow.amounts,
    lend: lend.amounts,
    ...(grants === null ? {} : { grants: grants.grants }),
    ...(loans === null ? {} : { loans: loans.loans }),
  };
}

type ReadKeys = { readonly ok: true; readonly amounts: ReadonlyMap<Key, Amount> };

function readLimits(
  limits: Hard | undefined,
  hard: ReadonlyMap<Key, Amount>,
  mode: Mode,
  what: string,
): ReadKeys | Refusal {
  const read = readKeys(limits ?? {});
  if (!read.ok) return read;
  if (read.amounts.size > 0 && mode === 'carved')
    return {
      ok: false,
      code: 'UnknownKey',
      reason: `${what}: a carved group has no such limits; expected mode elastic`,
    };
  const unknown = [...read.amounts.keys()].find((key) => !hard.has(key));
  if (unknown !== undefined) return { ok: false, code: 'UnknownKey', reason: `${what}: ${unknown} is not in hard` };
  return read;
}

function readKeys(quantities: Hard): ReadKeys | Refusal {
  const amounts = new Map<Key, Amount>();
  const keys = Object.keys(quantities);
  if (keys.length > MAX_KEYS) return { ok: false, code: 'UnknownKey', reason: `more than ${MAX_KEYS} keys` };
  for (const key of keys) {
    const problem = keyProblem(key);
    if (problem !== null) return { ok: false, code: 'UnknownKey', reason: problem };
    const parsed = readOne(key, quantities[key] as Quantity);
    if (!parsed.ok) return { ok: false, code: parsed.code, reason: `${key}: ${parsed.reason}` };
    if (parsed.amount < 0) return { ok: false, code: 'NegativeHard', reason: `${key} is negative` };
    amounts.set(key, parsed.amount);
  }
  return { ok: true, amounts };
}

/** Cash as a bigint is in base units times milliseconds, up to 2^63-1 unit-hours. */
function readOne(key: Key, quantity: Quantity): Parsed {
  if (typeof quantity !== 'bigint' || cashTarget(key) === null) return readQuantity(key, quantity, 'down');
  if (quantity <= MAX_QUANTITY * HOUR_MS) return { ok: true, amount: amountOf(quantity) };
  return { ok: false, code: 'QuantityTooLarge', reason: 'exceeds 2^63-1 unit-hours' };
}

/** Typed keys above the general key of the same resource: such a limit is never reached. */
export function unreachableKeys(hard: ReadonlyMap<Key, Amount>): readonly Key[] {
  return [...hard.keys()].filter((key) => {
    for (let dot = key.lastIndexOf('.'); dot > 0; dot = key.lastIndexOf('.', dot - 1)) {
      const general = hard.get(key.slice(0, dot));
      if (general !== undefined && general < (hard.get(key) as Amount)) return true;
    }
    return false;
  });
}
