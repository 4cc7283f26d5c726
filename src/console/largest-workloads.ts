import { formatAmount } from '../manifests/quantity.js';
import { stopWay } from '../kube/quota/stoppable-kinds.js';
import { refOfKey, type Charge, type GroupStatus } from '../quota/index.js';
import { topWorkloads } from '../quota-command/top.js';

/** A workload that is charged to a group. */
export interface WorkloadRow {
  readonly group: string;
  readonly kind: string;
  /** The kind with its API group, where a person can stop it; absent for other kinds. */
  readonly stoppable?: string;
  readonly namespace: string;
  readonly name: string;
  readonly pods: number;
  /** Whether it was admitted and has not been observed yet. */
  readonly isReserved: boolean;
  /** What it takes of the limits of its group, as texts such as `gpus=2`. */
  readonly charged: readonly string[];
}

/** Workloads of each group that are kept. */
const KEPT = 50;

/**
 * The workloads of groups that take most of a limit, charge by charge: all of them would take too much memory.
 * Workloads that are stopped take nothing, and come last.
 */
export class LargestWorkloads {
  readonly #ofGroup = new Map<string, Charge[]>();
  readonly #stoppedOf = new Map<string, Charge[]>();
  readonly #statuses: ReadonlyMap<string, GroupStatus>;

  constructor(statuses: readonly GroupStatus[]) {
    this.#statuses = new Map(statuses.map((status) => [status.name, status]));
  }

  add(charge: Charge): void {
    if (charge.pods === 0 && charge.amounts.size === 0) {
      const stopped = this.#stoppedOf.get(charge.group) ?? [];
      this.#stoppedOf.set(charge.group, stopped);
      if (stopped.length < KEPT) stopped.push(charge);
      return;
    }
    const known = this.#ofGroup.get(charge.group);
    if (known === undefined) this.#ofGroup.set(charge.group, [charge]);
    else if (known.push(charge) >= 4 * KEPT) this.#ofGroup.set(charge.group, this.#largest(charge.group, known));
  }

  /** The largest workloads of a group first. */
  of(group: string): readonly WorkloadRow[] {
    const running = this.#largest(group, this.#ofGroup.get(group) ?? []);
    return [...running, ...(this.#stoppedOf.get(group) ?? [])].map(rowOf);
  }

  #largest(group: string, charges: readonly Charge[]): Charge[] {
    const status = this.#statuses.get(group);
    if (status === undefined) return [];
    return topWorkloads([status], charges, null)
      .slice(0, KEPT)
      .map(({ charge }) => charge);
  }
}

function rowOf({ group, workload, pods, isReserved, amounts }: Charge): WorkloadRow {
  const { kind, namespace = '', name } = refOfKey(workload);
  const charged = [...amounts].map(([key, amount]) => `${key}=${formatAmount(key, amount)}`);
  return {
    ...{ group, kind: kind.replace(/\..*$/u, ''), namespace, name, pods, isReserved, charged },
    ...(stopWay(kind) === null ? {} : { stoppable: kind }),
  };
}
