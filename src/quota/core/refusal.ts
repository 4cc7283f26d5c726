/** Why something is refused; `OK` and `NotManaged` are no refusals. */
export type Code =
  | 'OK'
  /** The workload belongs to no group: nothing is charged. */
  | 'NotManaged'
  // Input that means nothing.
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
  /** The type that is declared is not the one that is asked for of the nodes. */
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
  /** Others changed the same groups again and again: ask once more. */
  | 'Conflict';

/** An expected refusal, as a value. */
export interface Refusal {
  readonly ok: false;
  readonly code: Exclude<Code, 'OK' | 'NotManaged'>;
  readonly reason: string;
}
