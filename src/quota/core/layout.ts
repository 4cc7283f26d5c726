import { cashTarget, type Key } from './key.js';

/**
 * The keys of a group in a fixed order, shared by all groups with the same keys: quantities stand in arrays beside
 * them. Slots count through `keys` first, then through `cashKeys`.
 */
export interface Layout {
  /** Keys but cash, ascending. */
  readonly keys: readonly Key[];
  /** What cash is charged for: `limits.cpu` for `cash/limits.cpu`; ascending. */
  readonly cashKeys: readonly Key[];
  /** Place in `keys`. */
  readonly slots: ReadonlyMap<Key, number>;
}

/** Beyond this the table of known layouts is thrown away: groups keep theirs, equal ones are only no longer shared. */
const MAX_KNOWN = 4096;

/** Hands out layouts: one object for one set of keys. */
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
