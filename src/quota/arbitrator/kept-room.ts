import { of, type Quantities } from '../../manifests/quantities.js';

/** A request for quota while room is kept for refused workloads of the same cohort. */
export interface KeptRoom {
  /** What the request adds. */
  readonly adds: Quantities;
  /** How much more the group could use now. */
  readonly room: Quantities;
  /** How much of the part that the group lends to nobody is free: room is never kept there for others. */
  readonly unlent: Quantities;
  /** The amounts that are kept for all others together. */
  readonly kept: Quantities;
}

/** The first key of which a request would take room that is kept for others; null if it leaves that room. */
export function keptKey({ adds, room, unlent, kept }: KeptRoom): string | null {
  for (const [key, amount] of adds) {
    const shared = amount - of(unlent, key);
    if (of(kept, key) > 0 && shared > 0 && of(room, key) - of(unlent, key) - shared < of(kept, key)) return key;
  }
  return null;
}
