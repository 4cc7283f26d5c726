/**
 * What an error says of the GPU: `ignored` nothing (the application's own, or a mere remark); `transient` that it
 * should rest and may come back; `reset` that it is of no use until it was reset; `fatal` that it is broken or gone.
 */
export type XidClass = 'ignored' | 'transient' | 'reset' | 'fatal';

export const XID_CLASSES: readonly XidClass[] = ['ignored', 'transient', 'reset', 'fatal'];

/** One line of the table. */
export interface KnownXid {
  readonly class: XidClass;
  /** In words, for the reason that operators read. */
  readonly meaning: string;
}

/** How errors of GPUs are taken; see etc/xid-classes.json. */
export interface HealthPolicy {
  readonly xids: ReadonlyMap<number, KnownXid>;
  /** Class of an XID that the table does not know. */
  readonly otherwise: XidClass;
  /** Class of memory errors that ECC could not correct. */
  readonly uncorrectedEcc: XidClass;
  /** A GPU rests this long after a transient error, twice as long after the second, and so on. */
  readonly probationMs: number;
  readonly longestProbationMs: number;
  /** So many transient errors within the window count as one that needs a reset. */
  readonly strikes: number;
  readonly strikeWindowMs: number;
}
