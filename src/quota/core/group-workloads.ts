import type { LayeredMap } from './layered-map.js';
import type { Workload } from './workload.js';

/**
 * The workloads of a group, in a list that is only appended to: one that left or was replaced stays in it, marked,
 * until the list is tidied. That costs some ten bytes a workload, where a map for each group would cost as much as the
 * map of all.
 */
export class GroupWorkloads {
  readonly #below: GroupWorkloads | null;
  readonly #entered: Workload[] = [];
  #size: number;

  constructor(below: GroupWorkloads | null = null) {
    this.#below = below;
    this.#size = below === null ? 0 : below.size;
  }

  get size(): number {
    return this.#size;
  }

  /** A workload entered the group, in place of `old` if it was there already. */
  enter(workload: Workload, old: Workload | null): void {
    if (old === null) this.#size++;
    else this.#mark(old);
    this.#entered.push(workload);
    this.#tidy();
  }

  /** A workload left the group. */
  leave(old: Workload): void {
    this.#size--;
    this.#mark(old);
    this.#tidy();
  }

  /**
   * Calls `visit` with each workload of the group once. `all` has the entries that are valid where this group workloads
   * is.
   */
  forEach(all: LayeredMap<string, Workload>, visit: (workload: Workload) => void): void {
    if (this.#below === null) {
      for (const workload of this.#entered) if (!workload.gone) visit(workload);
      return;
    }
    // A fork must not mark what others see: it asks its own map which entries are valid.
    for (const workload of this.#candidates()) if (all.get(workload.key) === workload) visit(workload);
  }

  /** A group workloads that starts as this one. */
  fork(): GroupWorkloads {
    return new GroupWorkloads(this);
  }

  #candidates(): readonly Workload[] {
    return this.#below === null ? this.#entered : [...this.#below.#candidates(), ...this.#entered];
  }

  #mark(old: Workload): void {
    if (this.#below === null) old.gone = true;
  }

  #tidy(): void {
    const list = this.#entered;
    if (this.#below !== null || list.length < 64 || list.length < 2 * this.#size) return;
    let kept = 0;
    for (const workload of list) if (!workload.gone) list[kept++] = workload;
    list.length = kept;
  }
}
