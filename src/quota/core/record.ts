import { amountOf, type Amount } from './amount.js';
import type { Budget, Grant } from './budget.js';
import type { Change } from './change.js';
import type { DeclaredGrant } from './declared-grant.js';
import type { LimitReservation, Mode } from './group.js';
import type { Key } from './key.js';
import type { Loan } from './loan.js';
import type { Pod } from './pod.js';
import type { Candidate } from './reservation.js';
import type { Need, PodSetCharge, RequestShape, RequestShapeTable } from './request-shape.js';
import type { Types } from './type-family.js';
import type { Workload } from './workload.js';

/** An exact integer in JSON: a number, or digits beyond 2^53; null for Infinity. */
type Digits = number | string | null;

/** A record of the state as plain JSON; the value is null for a deleted record. */
export type StoredRecord =
  | { readonly kind: 'group'; readonly key: string; readonly group: string; readonly value: GroupRecord | null }
  | { readonly kind: 'workload'; readonly key: string; readonly group: string; readonly value: WorkloadRecord | null }
  | { readonly kind: 'pod'; readonly key: string; readonly group: string; readonly value: PodRecord | null }
  | {
      readonly kind: 'reservation';
      readonly key: string;
      readonly group: string;
      readonly value: ReservationRecord | null;
    }
  | { readonly kind: 'loan'; readonly key: string; readonly group: string; readonly value: LoanRecord | null };

/** The part of a group that is not counted from workloads and children. */
export interface GroupRecord {
  readonly life: number;
  readonly parent: string;
  readonly mode: Mode;
  readonly terminating: boolean;
  /** [generation, expiresAt]; absent for none. */
  readonly limitReservation?: readonly [number, number];
  /** [key, limit]. */
  readonly hard: readonly (readonly [Key, Digits])[];
  readonly borrow: readonly Digits[];
  readonly lend: readonly Digits[];
  readonly budgets: readonly BudgetRecord[];
  /** Absent for none. */
  readonly grants?: readonly DeclaredGrantRecord[];
}

interface DeclaredGrantRecord {
  readonly name: string;
  readonly key: Key;
  readonly amount: string;
  readonly carryOver: string;
  readonly from: number | null;
  readonly everyMs: number;
  readonly expiresAfterMs: number;
  /** Null for no end. */
  readonly until: number | null;
  readonly mode: 'topup' | 'reset';
  readonly anchor: number | null;
  readonly begun: number | null;
  readonly refused: string;
}

interface BudgetRecord {
  readonly key: Key;
  readonly listed: boolean;
  readonly base: string;
  readonly hard: string;
  readonly offset: string;
  readonly rate: string;
  readonly since: number | null;
  readonly settled: string;
  /** Absent for 0. */
  readonly uncertain?: string;
  readonly announced: number;
  readonly grants: readonly GrantRecord[];
}

interface GrantRecord {
  readonly id: string;
  readonly amount: string;
  readonly validFrom: number;
  readonly expiresAt: number | null;
  readonly mode: 'topup' | 'reset';
  readonly carryOverMax: string;
  readonly everyMs: number;
  readonly left: string | null;
}

/** The request shape of a pod, without amounts. Written once per file: see ShapeDictionary. */
export interface ShapeRecord {
  readonly signature: string;
  readonly needs: readonly Need[];
  readonly types: Types;
  readonly unspecified: readonly string[];
}

/** [name, count, shape, amounts] */
type PodSetRecord = readonly [string, number, ShapeRecord | number, readonly Digits[]];

export interface WorkloadRecord {
  readonly uid: string;
  readonly podSets: readonly PodSetRecord[];
  readonly countKey: string;
  readonly heldReplicas: number;
  /** Absent for 0. */
  readonly version?: number;
}

export interface PodRecord {
  readonly workload: string;
  readonly end: number | null;
  /** Only for a pod without spans. */
  readonly group?: string;
  readonly isRetained?: true;
  /** [at, group, life, shape, amounts] */
  readonly spans: readonly (readonly [number, string, number, ShapeRecord | number, readonly Digits[]])[];
}

export interface ReservationRecord {
  readonly workload: string;
  readonly candidates: readonly {
    readonly id: string;
    readonly expiresAt: number;
    readonly workload: WorkloadRecord;
  }[];
}

export interface LoanRecord {
  readonly lender: string;
  readonly borrower: string;
  readonly validFrom: number;
  readonly until: number;
  readonly amounts: readonly (readonly [Key, Digits])[];
  readonly state: Loan['state'];
}

/**
 * How records reference shapes. Without a dictionary, every record contains its shapes. With one, only the first record
 * of a file that uses a shape contains it; later records contain its index in the order of appearance.
 */
export class ShapeDictionary {
  readonly #numbers = new Map<RequestShape, number>();
  readonly #shapes: RequestShape[] = [];
  /** Lists that were read before: a reader of many records may give the same list again. */
  readonly #known = new Map<WorkloadRecord['podSets'], readonly PodSetCharge[]>();

  write(shape: RequestShape): ShapeRecord | number {
    const number = this.#numbers.get(shape);
    if (number !== undefined) return number;
    this.#numbers.set(shape, this.#numbers.size);
    return shapeRecord(shape);
  }

  read(record: ShapeRecord | number, shapes: RequestShapeTable): RequestShape {
    if (typeof record === 'number') {
      const shape = this.#shapes[record];
      if (shape === undefined) throw new Error(`a record names shape ${record} of ${this.#shapes.length}`);
      return shape;
    }
    const shape =
      shapes.find(record.signature) ?? shapes.add(record.signature, record.needs, record.types, record.unspecified);
    this.#shapes.push(shape);
    return shape;
  }

  /** Parses the pod sets of a workload. */
  podSets(records: WorkloadRecord['podSets'], shapes: RequestShapeTable): readonly PodSetCharge[] {
    const known = this.#known.get(records);
    if (known !== undefined) return known;
    const podSets = records.map(([name, count, written, amounts]): PodSetCharge => {
      const shape = this.read(written, shapes);
      return { name, count, shape, amounts: shape.share(amounts.map(amountOfDigits)) };
    });
    const [only] = podSets;
    const shared = podSets.length === 1 && only !== undefined ? only.shape.shareSet(only) : podSets;
    // A record with a shape adds it to this dictionary each time.
    if (records.every(([, , written]) => typeof written === 'number')) {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(records, shared);
    }
    return shared;
  }
}

const MAX_KNOWN = 4096;

/** Converts a change into plain JSON. */
export function toRecord(change: Change, dictionary: ShapeDictionary | null): StoredRecord {
  const { kind, key, group } = change;
  switch (kind) {
    case 'group':
      return { kind, key, group, value: change.value === null ? null : groupRecord(change.value) };
    case 'workload':
      return { kind, key, group, value: change.value === null ? null : workloadRecord(change.value, dictionary) };
    case 'pod':
      return { kind, key, group, value: change.value === null ? null : podRecord(change.value, dictionary) };
    case 'reservation': {
      const candidates =
        change.value?.candidates.map(({ id, expiresAt, workload }) => ({
          id,
          expiresAt,
          workload: workloadRecord(workload, dictionary),
        })) ?? [];
      return {
        kind,
        key,
        group,
        value: change.value === null ? null : { workload: change.value.workload, candidates },
      };
    }
    case 'loan':
      return { kind, key, group, value: change.value === null ? null : loanRecord(change.value) };
  }
}

type GroupValue = NonNullable<Extract<Change, { readonly kind: 'group' }>['value']>;

function groupRecord(group: GroupValue): GroupRecord {
  return {
    life: group.life,
    parent: group.parent,
    mode: group.mode,
    terminating: group.terminating,
    ...(group.limitReservation === null
      ? {}
      : { limitReservation: [group.limitReservation.generation, group.limitReservation.expiresAt] as const }),
    hard: group.layout.keys.map((key, slot) => [key, digits(group.amounts.hard(slot))]),
    borrow: group.layout.keys.map((_, slot) => digits(group.amounts.borrowLimit(slot))),
    lend: group.layout.keys.map((_, slot) => digits(group.amounts.lendLimit(slot))),
    budgets: group.budgets.map((budget) => ({
      key: budget.key,
      listed: budget.listed,
      base: `${budget.base}`,
      hard: `${budget.hard}`,
      offset: `${budget.offset}`,
      rate: `${budget.rate}`,
      since: finite(budget.since),
      settled: `${budget.settled}`,
      ...(budget.uncertain === 0n ? {} : { uncertain: `${budget.uncertain}` }),
      announced: budget.announced,
      grants: budget.grants.map((grant) => ({
        ...grant,
        amount: `${grant.amount}`,
        expiresAt: finite(grant.expiresAt),
        carryOverMax: `${grant.carryOverMax}`,
        left: grant.left === null ? null : `${grant.left}`,
      })),
    })),
    ...(group.declared.length === 0
      ? {}
      : {
          grants: group.declared.map((grant) => ({
            ...grant,
            amount: `${grant.amount}`,
            carryOver: `${grant.carryOver}`,
            until: finite(grant.until),
          })),
        }),
  };
}

/** Parses the declared grants of a group record. */
export function readDeclared({ grants }: GroupRecord): readonly DeclaredGrant[] {
  return (grants ?? NO_GRANTS_RECORD).map((grant) => ({
    ...grant,
    amount: BigInt(grant.amount),
    carryOver: BigInt(grant.carryOver),
    until: grant.until ?? Infinity,
  }));
}

const NO_GRANTS_RECORD: readonly DeclaredGrantRecord[] = [];

/** Parses the limit reservation of a group record. */
export function readLimitReservation({ limitReservation }: GroupRecord): LimitReservation | null {
  if (limitReservation === undefined) return null;
  const [generation, expiresAt] = limitReservation;
  return { generation, expiresAt };
}

/** Parses budgets; the caller computes the sums of children. */
export function readBudgets(records: readonly BudgetRecord[]): Budget[] {
  return records.map((record) => ({
    key: record.key,
    listed: record.listed,
    base: BigInt(record.base),
    hard: BigInt(record.hard),
    offset: BigInt(record.offset),
    rate: BigInt(record.rate),
    since: record.since ?? -Infinity,
    childSum: 0n,
    settled: BigInt(record.settled),
    uncertain: BigInt(record.uncertain ?? 0),
    announced: record.announced,
    grants: record.grants.map((grant): Grant => ({
      ...grant,
      amount: BigInt(grant.amount),
      expiresAt: grant.expiresAt ?? Infinity,
      carryOverMax: BigInt(grant.carryOverMax),
      left: grant.left === null ? null : BigInt(grant.left),
    })),
  }));
}

function workloadRecord(workload: Workload, dictionary: ShapeDictionary | null): WorkloadRecord {
  const { uid, countKey, heldReplicas, version } = workload;
  const podSets = workload.podSets.map(({ name, count, shape, amounts }): PodSetRecord => [
    name,
    count,
    shapeIn(dictionary, shape),
    amounts.map(digits),
  ]);
  return { uid, podSets, countKey, heldReplicas, ...(version === 0 ? {} : { version }) };
}

/** Parses a workload record. */
export function readWorkload(
  key: string,
  group: string,
  record: WorkloadRecord,
  dictionary: ShapeDictionary,
  shapes: RequestShapeTable,
): Workload {
  return {
    key,
    uid: record.uid,
    group,
    podSets: dictionary.podSets(record.podSets, shapes),
    countKey: record.countKey,
    heldReplicas: record.heldReplicas,
    version: record.version ?? 0,
    isStale: false,
  };
}

function podRecord(pod: Pod, dictionary: ShapeDictionary | null): PodRecord {
  return {
    workload: pod.workload,
    end: finite(pod.end),
    ...(pod.spans.length > 0 || pod.group === undefined ? {} : { group: pod.group }),
    ...(pod.isRetained === true ? { isRetained: true as const } : {}),
    spans: pod.spans.map(
      ({ at, group, life, shape, amounts }) =>
        [at, group, life, shapeIn(dictionary, shape), amounts.map(digits)] as const,
    ),
  };
}

/** Parses a pod record. */
export function restorePod(id: string, record: PodRecord, dictionary: ShapeDictionary, shapes: RequestShapeTable): Pod {
  const spans = record.spans.map(([at, group, life, written, amounts]) => {
    const shape = dictionary.read(written, shapes);
    return { at, group, life, shape, amounts: shape.share(amounts.map(amountOfDigits)) };
  });
  return {
    id,
    workload: record.workload,
    end: record.end ?? Infinity,
    spans,
    ...(record.group === undefined ? {} : { group: record.group }),
    ...(record.isRetained === true ? { isRetained: true } : {}),
  };
}

/** Parses the candidates of a reservation record. */
export function readCandidates(
  group: string,
  record: ReservationRecord,
  dictionary: ShapeDictionary,
  shapes: RequestShapeTable,
): readonly Candidate[] {
  return record.candidates.map(({ id, expiresAt, workload }) => ({
    id,
    expiresAt,
    workload: readWorkload(record.workload, group, workload, dictionary, shapes),
  }));
}

function loanRecord(loan: Loan): LoanRecord {
  const { lender, borrower, validFrom, until, state } = loan;
  return {
    lender,
    borrower,
    validFrom,
    until,
    state,
    amounts: [...loan.amounts].map(([key, amount]) => [key, digits(amount)]),
  };
}

/** Parses a loan record. */
export function readLoan(id: string, record: LoanRecord): Loan {
  return { ...record, id, amounts: new Map(record.amounts.map(([key, amount]) => [key, amountOfDigits(amount)])) };
}

/** Parses an amount written by `digits`. */
export function amountOfDigits(written: Digits): Amount {
  if (written === null) return Infinity;
  return typeof written === 'number' ? written : amountOf(BigInt(written));
}

function digits(amount: Amount): Digits {
  if (amount === Infinity) return null;
  return typeof amount === 'number' ? amount : `${amount}`;
}

function finite(time: number): number | null {
  return Number.isFinite(time) ? time : null;
}

function shapeIn(dictionary: ShapeDictionary | null, shape: RequestShape): ShapeRecord | number {
  return dictionary === null ? shapeRecord(shape) : dictionary.write(shape);
}

function shapeRecord({ signature, needs, types, unspecified }: RequestShape): ShapeRecord {
  return { signature, needs, types, unspecified };
}
