import type { LayeredMap } from './layered-map.js';
import type { Workload } from './workload.js';

/**
 * The workloads of a group, in an append-only list: an entry that was removed or replaced stays in it, marked, until
 * compaction. This takes about ten bytes per workload; a map per group would take as much as the map of all workloads.
 */
export class GroupWorkloads {
  readonly #base: GroupWorkloads | null;
  readonly #entered: Workload[] = [];
  #size: number;

  constructor(base: GroupWorkloads | null = null) {
    this.#base = base;
    this.#size = base === null ? 0 : base.size;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a workload, in place of `old` if given. */
  enter(workload: Workload, old: Workload | null): void {
    if (old === null) this.#size++;
    else this.#mark(old);
    this.#entered.push(workload);
    this.#compact();
  }

  /** Removes a workload. */
  leave(old: Workload): void {
    this.#size--;
    this.#mark(old);
    this.#compact();
  }

  /** Calls `visit` once with each workload of the group. `all` holds the valid entries in this state. */
  forEach(all: LayeredMap<string, Workload>, visit: (workload: Workload) => void): void {
    if (this.#base === null) {
      for (const workload of this.#entered) if (!workload.isStale) visit(workload);
      return;
    }
    // A fork must not mark shared entries; its own map contains the valid ones.
    for (const workload of this.#candidates()) if (all.get(workload.key) === workload) visit(workload);
  }

  /** The same, one after the other; valid while nothing changes. Takes twice the time. */
  *values(all: LayeredMap<string, Workload>): Generator<Workload> {
    for (const workload of this.#candidates())
      if (this.#base === null ? !workload.isStale : all.get(workload.key) === workload) yield workload;
  }

  /** A copy-on-write fork. */
  fork(): GroupWorkloads {
    return new GroupWorkloads(this);
  }

  #candidates(): readonly Workload[] {
    return this.#base === null ? this.#entered : [...this.#base.#candidates(), ...this.#entered];
  }

  #mark(old: Workload): void {
    if (this.#base === null) old.isStale = true;
  }

  #compact(): void {
    const list = this.#entered;
    if (this.#base !== null || list.length < 64 || list.length < 2 * this.#size) return;
    let kept = 0;
    for (const workload of list) if (!workload.isStale) list[kept++] = workload;
    list.length = kept;
  }
}
