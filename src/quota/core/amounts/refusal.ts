/** Reason of a refusal; `OK` and `NotManaged` are not refusals. */
export type Code =
  | 'OK'
  /** The workload has no group, so that nothing is charged. */
  | 'NotManaged'
  // Invalid input.
  | 'InvalidName'
  | 'InvalidQuantity'
  | 'QuantityTooLarge'
  | 'NegativeQuantity'
  | 'NegativeHard'
  | 'UnknownKey'
  | 'InvalidType'
  | 'InvalidCount'
  | 'InvalidDemand'
  | 'InvalidManifest'
  | 'InvalidTime'
  | 'InvalidCommand'
  | 'InvalidMode'
  // Groups.
  | 'AlreadyExists'
  | 'GroupNotFound'
  | 'GroupTerminating'
  | 'ParentNotFound'
  | 'ParentTerminating'
  | 'ParentImmutable'
  | 'ParentExceeded'
  | 'MissingParentKey'
  | 'ChildMissingKey'
  | 'BelowChildren'
  | 'CashBelowUsed'
  | 'NotLeaf'
  | 'HasWorkloads'
  | 'TooDeep'
  // Workloads.
  | 'QuotaExceeded'
  | 'CashExhausted'
  | 'MustSpecify'
  | 'TypeRequired'
  /** The declared type differs from the type requested from the nodes. */
  | 'TypeMismatch'
  | 'LabelRemoved'
  | 'WorkloadNotFound'
  | 'PodSetNotFound'
  // Reservations, grants, loans.
  | 'ReservationNotFound'
  | 'TooManyReservations'
  | 'GrantExists'
  | 'LoanExists'
  | 'LoanRefused'
  | 'TransferRefused'
  // Stores.
  /** Concurrent changes of the same groups prevented the commit; retry. */
  | 'Conflict';

/** An expected refusal, as a value. */
export interface Refusal {
  readonly ok: false;
  readonly code: Exclude<Code, 'OK' | 'NotManaged'>;
  readonly reason: string;
}
