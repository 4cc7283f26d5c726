/**
 * A list of rows that change, with its filter and selection. Rows have keys, so the selection stays on its row when the
 * order changes.
 */
export interface ListState {
  readonly filter: string;
  /** The selected row; null before the user selects one, and while no row is shown. */
  readonly key: string | null;
  /** The row that the user selected: while the filter hides it, `key` is another one. */
  readonly wanted: string | null;
  /** Position of the selected row; -1 without. */
  readonly index: number;
  /** First row of the window, as it was last drawn. */
  readonly offset: number;
}

export const NO_LIST: ListState = { filter: '', key: null, wanted: null, index: -1, offset: 0 };

/** The list over the rows that are shown now: if the selected one is not among them, its neighbour is selected. */
export function settle(list: ListState, keys: readonly string[]): ListState {
  if (list.wanted === null && list.key === null) return { ...list, index: -1 };
  const at = [list.wanted, list.key].map((key) => (key === null ? -1 : keys.indexOf(key))).find((found) => found >= 0);
  const index = at ?? Math.min(Math.max(0, list.index), keys.length - 1);
  const key = keys[index] ?? null;
  return { ...list, key, wanted: list.wanted ?? key, index };
}

export function select(list: ListState, key: string): ListState {
  return { ...list, key, wanted: key };
}

export function unselect(list: ListState): ListState {
  return { ...list, key: null, wanted: null, index: -1 };
}

/** Selects the row `lines` further; infinite numbers mean the ends. */
export function moveBy(list: ListState, keys: readonly string[], lines: number): ListState {
  const { index } = settle(list, keys);
  const key = keys[Math.max(0, Math.min(keys.length - 1, index + lines))];
  return key === undefined ? list : select(list, key);
}

/** First row of a window of `height` rows that shows the selected one, as near as possible to the last window. */
export function windowStart({ offset, index }: ListState, count: number, height: number): number {
  const shown = index < 0 ? 0 : Math.max(index - height + 1, Math.min(index, offset));
  return Math.max(0, Math.min(shown, count - height));
}
