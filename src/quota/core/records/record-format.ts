import type { Budget, Grant } from '../state/budget.js';
import type { Change } from '../state/change.js';
import type { Period } from '../amounts/period.js';
import type { DeclaredGrant } from '../state/declared-grant.js';
import { amountOfDigits, digits } from '../amounts/digits.js';
import type { LimitReservation } from '../state/group.js';
import type { Loan } from '../state/loan.js';
import type { Pod } from '../state/pod.js';
import type {
  BudgetRecord,
  DeclaredGrantRecord,
  GrantRecord,
  GroupRecord,
  LoanRecord,
  PodRecord,
  PodSetRecord,
  ReservationRecord,
  ShapeRecord,
  StoredRecord,
  WorkloadRecord,
} from './record.js';
import type { RequestShape, RequestShapeTable } from '../state/request-shape.js';
import type { Candidate } from '../state/reservation.js';
import { shapeRecord, type ShapeDictionary } from './shape-dictionary.js';
import type { Workload } from '../state/workload.js';

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
    ...(group.limitReservation === null ? {} : { limitReservation: limitReservationRecord(group.limitReservation) }),
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
      grants: budget.grants.map(({ every, ...grant }) => ({
        ...grant,
        ...periodRecord(every),
        amount: `${grant.amount}`,
        expiresAt: finite(grant.expiresAt),
        carryOverMax: `${grant.carryOverMax}`,
        left: grant.left === null ? null : `${grant.left}`,
      })),
    })),
    ...(group.declared.length === 0
      ? {}
      : {
          grants: group.declared.map(({ every, ...grant }) => ({
            ...grant,
            ...periodRecord(every),
            amount: `${grant.amount}`,
            carryOver: `${grant.carryOver}`,
            until: finite(grant.until),
          })),
        }),
  };
}

function periodRecord(every: Period): Pick<GrantRecord, 'everyMs' | 'monthly'> {
  return every === 'month' ? { everyMs: 0, monthly: true } : { everyMs: every };
}

function limitReservationRecord({ generation, expiresAt, uncertain }: LimitReservation): LimitReservationRecord {
  const parts = [...uncertain].map(([key, part]) => [key, `${part}`] as const);
  return parts.length === 0 ? [generation, expiresAt] : [generation, expiresAt, parts];
}

type LimitReservationRecord = NonNullable<GroupRecord['limitReservation']>;

/** Parses the declared grants of a group record. */
export function readDeclared({ grants }: GroupRecord): readonly DeclaredGrant[] {
  return (grants ?? NO_GRANTS_RECORD).map(({ everyMs, monthly, ...grant }) => ({
    ...grant,
    every: monthly === true ? 'month' : everyMs,
    amount: BigInt(grant.amount),
    carryOver: BigInt(grant.carryOver),
    until: grant.until ?? Infinity,
  }));
}

const NO_GRANTS_RECORD: readonly DeclaredGrantRecord[] = [];

/** Parses the limit reservation of a group record. */
export function readLimitReservation({ limitReservation }: GroupRecord): LimitReservation | null {
  if (limitReservation === undefined) return null;
  const [generation, expiresAt, parts = []] = limitReservation;
  return { generation, expiresAt, uncertain: new Map(parts.map(([key, part]) => [key, BigInt(part)])) };
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
    grants: record.grants.map(({ everyMs, monthly, ...grant }): Grant => ({
      ...grant,
      every: monthly === true ? 'month' : everyMs,
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
    countKey: shapes.sharedText(record.countKey),
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

function finite(time: number): number | null {
  return Number.isFinite(time) ? time : null;
}

function shapeIn(dictionary: ShapeDictionary | null, shape: RequestShape): ShapeRecord | number {
  return dictionary === null ? shapeRecord(shape) : dictionary.write(shape);
}
