import type { Digits } from '../amounts/digits.js';
import type { Mode } from '../state/group.js';
import type { Key } from '../../../manifests/key.js';
import type { Loan } from '../state/loan.js';
import type { Need } from '../state/request-shape.js';
import type { Types } from '../amounts/type-family.js';

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
  /**
   * [generation, expiresAt, [key, uncertain part]]; absent for none. The last is absent where every limit is certain.
   */
  readonly limitReservation?: readonly [number, number, (readonly (readonly [Key, string])[])?];
  /** [key, limit]. */
  readonly hard: readonly (readonly [Key, Digits])[];
  readonly borrow: readonly Digits[];
  readonly lend: readonly Digits[];
  readonly budgets: readonly BudgetRecord[];
  /** Absent for none. */
  readonly grants?: readonly DeclaredGrantRecord[];
}

export interface DeclaredGrantRecord {
  readonly name: string;
  readonly key: Key;
  readonly amount: string;
  readonly carryOver: string;
  readonly from: number | null;
  /** Milliseconds; 0 for a grant that is not repeated, and for calendar months. */
  readonly everyMs: number;
  /** Whether it is repeated at calendar months; absent for no. */
  readonly monthly?: true;
  readonly expiresAfterMs: number;
  /** Null for no end. */
  readonly until: number | null;
  readonly mode: 'topup' | 'reset';
  readonly anchor: number | null;
  readonly begun: number | null;
  readonly refused: string;
}

export interface BudgetRecord {
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

export interface GrantRecord {
  readonly id: string;
  readonly amount: string;
  readonly validFrom: number;
  readonly expiresAt: number | null;
  readonly mode: 'topup' | 'reset';
  readonly carryOverMax: string;
  /** Milliseconds; 0 for a grant that is not repeated, and for calendar months. */
  readonly everyMs: number;
  /** Whether it is repeated at calendar months; absent for no. */
  readonly monthly?: true;
  readonly left: string | null;
}

/** The request shape of a pod, without amounts. Written once per file: see `ShapeDictionary`. */
export interface ShapeRecord {
  readonly signature: string;
  readonly needs: readonly Need[];
  readonly types: Types;
  readonly unspecified: readonly string[];
}

/** [name, count, shape, amounts] */
export type PodSetRecord = readonly [string, number, ShapeRecord | number, readonly Digits[]];

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
