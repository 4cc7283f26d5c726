import { cashTarget, type Key } from '../../../manifests/key.js';

/**
 * The keys of a group in a fixed order, shared by all groups with the same keys; arrays of quantities are indexed by
 * them. Slots number `keys` first, then `cashKeys`.
 */
export interface Layout {
  /** All keys except cash, ascending. */
  readonly keys: readonly Key[];
  /** Keys that budgets charge, `limits.cpu` for `cash/limits.cpu`; ascending. */
  readonly cashKeys: readonly Key[];
  /** Index of each key in `keys`. */
  readonly slots: ReadonlyMap<Key, number>;
}

/**
 * Maximum size of the table. Clearing it is harmless: groups keep their layouts, and equal ones are just not shared.
 */
const MAX_KNOWN = 4096;

/** Interns layouts: one object per set of keys. */
export class LayoutTable {
  readonly #known = new Map<string, Layout>();

  layoutOf(hardKeys: Iterable<Key>): Layout {
    const all = [...hardKeys].sort();
    const name = all.join(' ');
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const keys = all.filter((key) => cashTarget(key) === null);
    const layout: Layout = {
      keys,
      cashKeys: all.flatMap((key) => cashTarget(key) ?? []),
      slots: new Map(keys.map((key, slot) => [key, slot])),
    };
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(name, layout);
    return layout;
  }
}
