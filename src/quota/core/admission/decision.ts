import type { Key } from '../../../manifests/key.js';
import { cashTarget } from '../../../manifests/key.js';
import { formatAmount, formatQuantity } from '../../../manifests/quantity.js';
import type { Code } from '../amounts/refusal.js';

/** A key without room. Amounts are in base units, of cash in base units times milliseconds. */
export interface Violation {
  readonly group: string;
  readonly key: Key;
  readonly hard: bigint;
  readonly used: bigint;
  readonly requested: bigint;
  /** The missing amount; for exhausted cash, the usage beyond `hard`. */
  readonly short: bigint;
}

/** A warning about an admitted command. */
export interface Warning {
  readonly code: 'OverQuota' | 'Unreachable' | 'LoanOverdue' | 'LoanRefused' | 'NotCharged';
  /** For NotCharged, the resource that no key of the group charges. */
  readonly key: Key;
  readonly reason: string;
}

/** Alternatives for the caller of a refused command. */
export interface Hints {
  /** The largest number of replicas of the pod set that would be admitted now. */
  readonly maxReplicas?: number;
  /** Time, in milliseconds, at which a reservation expires or a grant begins and gives room. */
  readonly freeAt?: number;
  /** Types of the same resource that have room. */
  readonly otherTypes?: readonly string[];
}

/** The answer to a command. */
export interface Decision {
  readonly allowed: boolean;
  readonly code: Code;
  /** The reason as a sentence; for an exceeded quota, in the format of Kubernetes. */
  readonly message: string;
  readonly violations: readonly Violation[];
  readonly warnings: readonly Warning[];
  readonly hints: Hints;
  /** The change of the charged group by key, positive or negative, in base units. */
  readonly charged: ReadonlyMap<Key, bigint>;
  /** The groups that were tested, the charged one first. */
  readonly path: readonly string[];
  /** The revision of the state after the command. */
  readonly revision: number;
  /** The id of the reservation. */
  readonly reservation?: string;
}

/** The empty parts of a decision. */
export const NO_VIOLATIONS: readonly Violation[] = [];
export const NO_WARNINGS: readonly Warning[] = [];
export const NO_HINTS: Hints = {};
const NO_PATH: readonly string[] = [];

/** The parts of a decision; a missing part is empty. */
export interface DecisionParts {
  readonly allowed: boolean;
  readonly code: Code;
  readonly revision: number;
  readonly reason?: string;
  readonly violations?: readonly Violation[];
  readonly warnings?: readonly Warning[];
  readonly hints?: Hints;
  readonly path?: readonly string[];
  readonly charged?: () => ReadonlyMap<Key, bigint>;
  readonly reservation?: string | undefined;
}

/** A decision. Its message and charges are built when they are read. */
export class LazyDecision implements Decision {
  readonly allowed: boolean;
  readonly code: Code;
  readonly revision: number;
  readonly violations: readonly Violation[];
  readonly warnings: readonly Warning[];
  readonly hints: Hints;
  readonly path: readonly string[];
  readonly reservation?: string;
  readonly #reason: string | undefined;
  #charged: (() => ReadonlyMap<Key, bigint>) | ReadonlyMap<Key, bigint> | undefined;

  constructor(parts: DecisionParts) {
    this.allowed = parts.allowed;
    this.code = parts.code;
    this.revision = parts.revision;
    this.violations = parts.violations ?? NO_VIOLATIONS;
    this.warnings = parts.warnings ?? NO_WARNINGS;
    this.hints = parts.hints ?? NO_HINTS;
    this.path = parts.path ?? NO_PATH;
    if (parts.reservation !== undefined) this.reservation = parts.reservation;
    this.#reason = parts.reason;
    this.#charged = parts.charged;
  }

  get charged(): ReadonlyMap<Key, bigint> {
    if (typeof this.#charged === 'function') this.#charged = this.#charged();
    this.#charged ??= new Map();
    return this.#charged;
  }

  get message(): string {
    return this.#reason ?? describe(this);
  }
}

function describe(decision: Decision): string {
  if (decision.violations.length === 0) return decision.allowed ? 'allowed' : decision.code;
  const groups = [...new Set(decision.violations.map(({ group }) => group))];
  const text = groups.map((group) =>
    describeGroup(
      group,
      decision.violations.filter((violation) => violation.group === group),
    ),
  );
  const { maxReplicas, freeAt } = decision.hints;
  if (maxReplicas !== undefined && maxReplicas > 0)
    text.push(maxReplicas === 1 ? 'at most 1 replica fits' : `at most ${maxReplicas} replicas fit`);
  if (freeAt !== undefined) text.push(`room comes back at ${timeText(freeAt)}`);
  return `${decision.code}: ${text.join('; ')}`;
}

function describeGroup(group: string, violations: readonly Violation[]): string {
  const list = (amount: (violation: Violation) => bigint) =>
    violations.map((violation) => `${violation.key}=${formatAmount(violation.key, amount(violation))}`).join(',');
  const quota = violations.filter(({ key }) => cashTarget(key) === null);
  const requested = violations
    .map(({ key, requested }) => `${cashTarget(key) ?? key}=${formatQuantity(key, requested)}`)
    .join(',');
  const short = quota.map((violation) => `${violation.key}=${formatAmount(violation.key, violation.short)}`).join(',');
  return (
    `exceeded quota: ${group}, requested: ${requested}, used: ${list(({ used }) => used)}, limited: ${list(({ hard }) => hard)}` +
    (short === '' ? '' : `, short by: ${short}`)
  );
}

function timeText(at: number): string {
  // Beyond this JavaScript has no dates.
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : `${at} ms`;
}
