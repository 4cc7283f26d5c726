import { DEFAULT_FAMILIES, type TypeFamily } from '../amounts/type-family.js';

/** Options of an engine. */
export interface Policy {
  readonly families: readonly TypeFamily[];
  /** Refuse an untyped request in a group that limits only types of the resource. */
  readonly strictTypes: boolean;
  /** The time for which a stopped pod is remembered, for late events. */
  readonly lateEventsMs: number;
  /**
   * Whether reservations end by time alone. If false, the owner of the engine checks whether their objects exist, and
   * cancels those whose objects were not created.
   */
  readonly expiresReservations: boolean;
  /** The maximum number of levels of the tree. */
  readonly maxDepth: number;
}

export const DEFAULT_POLICY: Policy = {
  families: DEFAULT_FAMILIES,
  strictTypes: false,
  lateEventsMs: 3_600_000,
  expiresReservations: true,
  maxDepth: 64,
};
