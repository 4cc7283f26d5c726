import { DEFAULT_FAMILIES, type TypeFamily } from './type-family.js';

/** How an engine decides where the field has more than one opinion. */
export interface Policy {
  readonly families: readonly TypeFamily[];
  /** Refuse an untyped request in a group that limits only types of the resource. */
  readonly strictTypes: boolean;
  /** How long a stopped pod is remembered for events that come late. */
  readonly lateEventsMs: number;
  /** Levels of the tree. */
  readonly maxDepth: number;
}

export const DEFAULT_POLICY: Policy = {
  families: DEFAULT_FAMILIES,
  strictTypes: false,
  lateEventsMs: 3_600_000,
  maxDepth: 64,
};
