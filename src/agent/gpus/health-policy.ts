/**
 * The effect of an error on the GPU: `ignored`: nothing (the application's own error, or a mere notice); `transient`:
 * the GPU is unusable for a while and may recover; `reset`: unusable until it was reset; `fatal`: broken or gone.
 */
export type XidClass = 'ignored' | 'transient' | 'reset' | 'fatal';

export const XID_CLASSES: readonly XidClass[] = ['ignored', 'transient', 'reset', 'fatal'];

/** One line of the table. */
export interface KnownXid {
  readonly class: XidClass;
  /** Explanation of the error, used in reasons for operators. */
  readonly meaning: string;
}

/** How errors of GPUs are classified; see etc/xid-classes.json. */
export interface HealthPolicy {
  readonly xids: ReadonlyMap<number, KnownXid>;
  /** Class of an XID that is not in the table. */
  readonly otherwise: XidClass;
  /** Class of memory errors that ECC could not correct. */
  readonly uncorrectedEcc: XidClass;
  /** Length of the probation after a transient error; it doubles with each further error. */
  readonly probationMs: number;
  readonly longestProbationMs: number;
  /** This many transient errors within the window count as an error that needs a reset. */
  readonly strikes: number;
  readonly strikeWindowMs: number;
}
