import type { Demand, GroupSpec } from '../../src/quota/index.js';
import { KEYS } from './world.js';

type Amounts = readonly number[];

interface Entry {
  readonly group: string;
  readonly amounts: Amounts;
}

/**
 * The obvious algorithm, which controllers without counters use: to admit a workload, add up the usage of everything
 * below the root. Its decisions equal the engine's for an elastic tree that lends all it has.
 */
export class NaiveQuota {
  readonly #rootOf = new Map<string, string>();
  readonly #hardOf = new Map<string, Amounts>();
  readonly #entries = new Map<string, Entry>();

  constructor(groups: readonly GroupSpec[]) {
    for (const { name, parent = '', hard } of groups) {
      this.#rootOf.set(name, parent === '' ? name : (this.#rootOf.get(parent) as string));
      if (parent === '')
        this.#hardOf.set(
          name,
          KEYS.map((key) => parseInt(String(hard[key]), 10)),
        );
    }
  }

  /** Cores and GiB; its input is the output of `demandOf`. */
  admit({ workload, group, podSets: [podSet] }: Demand): boolean {
    const { count = 0, limits = {} } = podSet ?? {};
    const cores = limits['cpu'] === '500m' ? 0.5 : Number(limits['cpu']);
    const cards = Number(limits['nvidia.com/gpu']) * count;
    const amounts = [cores * count, parseInt(String(limits['memory']), 10) * count, cards, cards];
    const root = this.#rootOf.get(group) as string;
    const used = KEYS.map(() => 0);
    for (const entry of this.#entries.values()) {
      if (this.#rootOf.get(entry.group) === root)
        entry.amounts.forEach((amount, at) => (used[at] = (used[at] as number) + amount));
    }
    const fits = (this.#hardOf.get(root) as Amounts).every(
      (hard, at) => (used[at] as number) + (amounts[at] as number) <= hard,
    );
    if (fits) this.#entries.set(`${workload.namespace ?? ''}/${workload.name}`, { group, amounts });
    return fits;
  }

  /** Adds a workload without a check, to have many in little time. */
  fill({ workload, group }: Demand): void {
    this.#entries.set(`${workload.namespace ?? ''}/${workload.name}`, { group, amounts: [1, 1, 1, 1] });
  }
}
