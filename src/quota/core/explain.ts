import { minus, type Amount } from '../../manifests/amount.js';
import { maxReplicasFor, test } from './admission/admission.js';
import { usedAt, type Budget } from './state/budget.js';
import { readDemand, type Demand } from './admission/demand.js';
import type { Decision } from './admission/decision.js';
import type { Chain, Group } from './state/group.js';
import { CASH, type Key } from '../../manifests/key.js';
import { roomOf } from './admission/cohort.js';
import type { QuotaState } from './state/state.js';
import { chargeOf, chargeVectorOf, type ChargeVector } from './admission/charge-vector.js';
import { execute } from './execute.js';
import type { Workload } from './state/workload.js';

/** The explanation of one key. Amounts in base units, of cash in base units times milliseconds. */
export interface ExplainedKey {
  readonly group: string;
  readonly key: Key;
  readonly hard: bigint;
  readonly used: bigint;
  /** Present charge of the workload. */
  readonly charged: bigint;
  /** Change of the charge; for cash, of the key that it is charged for. */
  readonly requested: bigint;
  /** Remaining room; for cash, the unused amount. */
  readonly room: bigint;
  readonly fits: boolean;
}

/** A decision with its details. */
export interface Explanation {
  readonly decision: Decision;
  readonly keys: readonly ExplainedKey[];
  /** The maximum number of replicas that would be admitted, for a workload with one pod set. */
  readonly maxReplicas: number | null;
  /** Other types of the same family in the group's limits that would be admitted, such as { gpu: ['T4'] }. */
  readonly otherTypes: Readonly<Record<string, readonly string[]>>;
}

/** Explains why a demand would or would not be admitted at `now`; changes nothing. */
export function explain(state: QuotaState, demand: Demand, now: number): Explanation {
  const fork = state.fork();
  const decision = execute(fork, { type: 'admit', dryRun: true, ...demand }, Math.max(now, fork.now));
  const read = readDemand(fork.shapes, demand);
  const group = fork.group(demand.group);
  if (!read.ok || group === undefined) return { decision, keys: [], maxReplicas: null, otherTypes: {} };
  const old = fork.workloads.get(read.workload.key);
  const workload = old === undefined ? read.workload : { ...read.workload, heldReplicas: old.heldReplicas };
  const before = chargeOf(fork, group, workload.key, old);
  const chain = fork.chainOf(group);
  return {
    decision,
    keys: [...keysOf(fork, chain, workload, before), ...keysAbove(fork, chain)],
    maxReplicas: maxReplicasFor(fork, chain, workload, before, fork.now),
    otherTypes: decision.allowed ? {} : otherTypes(fork, group, demand),
  };
}

function keysOf(
  state: QuotaState,
  chain: Chain,
  workload: Workload,
  before: ChargeVector | null,
): readonly ExplainedKey[] {
  const group = chain.first;
  const { layout } = group;
  const after = chargeVectorOf(layout, workload);
  const at = (slot: number) => ({
    group: group.name,
    charged: BigInt(before?.[slot] ?? 0),
    requested: BigInt(minus(after[slot] as Amount, before?.[slot] ?? 0)),
  });
  return [
    ...layout.keys.map((key, slot): ExplainedKey => {
      const [hard, room] = [BigInt(group.amounts.hard(slot)), BigInt(roomOf(state, chain, slot))];
      const used = BigInt(group.amounts.totalUsed(slot));
      return { ...at(slot), key, hard, used, room, fits: at(slot).requested <= 0n || at(slot).requested <= room };
    }),
    ...layout.cashKeys.map((key, index): ExplainedKey => {
      const budget = group.budgets[index] as Budget;
      const used = usedAt(budget, state.now);
      const row = at(layout.keys.length + index);
      return {
        ...row,
        key: CASH + key,
        hard: budget.hard,
        used,
        room: budget.hard - used,
        fits: row.requested <= 0n || used < budget.hard,
      };
    }),
  ];
}

/** The pools from which an elastic group can borrow. */
function keysAbove(state: QuotaState, chain: Chain): readonly ExplainedKey[] {
  return chain.groups.slice(1).flatMap((above) => {
    return above.layout.keys.map((key, slot): ExplainedKey => {
      const used = BigInt(above.amounts.totalUsed(slot));
      const room = BigInt(roomOf(state, state.chainOf(above), slot));
      return {
        group: above.name,
        key,
        hard: BigInt(above.amounts.hard(slot)),
        used,
        charged: 0n,
        requested: 0n,
        room,
        fits: room >= 0n,
      };
    });
  });
}

function otherTypes(state: QuotaState, group: Group, demand: Demand): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {};
  for (const family of state.policy.families) {
    const types = typesNamed(group, family.resources).filter((type) => type !== (demand.types?.[family.name] ?? ''));
    const fitting = types.filter((type) => {
      const read = readDemand(state.shapes, { ...demand, types: { ...demand.types, [family.name]: type } });
      return (
        read.ok &&
        chargesType(group, read.workload, type) &&
        test(state, group, read.workload, null, state.now).decision === null
      );
    });
    if (fitting.length > 0) found[family.name] = fitting;
  }
  return found;
}

/**
 * Candidate types: the suffixes of a resource name in the keys of a group. `expand` decides which of them are types.
 */
function typesNamed(group: Group, resources: readonly string[]): readonly string[] {
  const types = group.layout.keys.flatMap((key) =>
    resources.flatMap((resource) => {
      const at = key.indexOf(`${resource}.`);
      return at < 0 ? [] : [key.slice(at + resource.length + 1)];
    }),
  );
  return [...new Set(types)].slice(0, 100);
}

function chargesType(group: Group, workload: Workload, type: string): boolean {
  const vector = chargeVectorOf(group.layout, workload);
  return group.layout.keys.some((key, slot) => key.endsWith(`.${type}`) && (vector[slot] as Amount) > 0);
}
