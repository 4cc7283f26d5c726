import type { Demand } from './demand.js';
import { copyState, type ClusterNode, type FreeState } from './node.js';
import type { Pace, Turns } from './pace.js';
import type { PlacementCost, Judge, Policy } from './policy/policy.js';
import { policyOf } from './policy/policies.js';
import { ScratchStates } from './scratch.js';
import { tryPod } from './fit-simulation.js';
import { EMPTY_MIX, type TypicalMix } from './typical-mix.js';

/** How many kinds of pod have cached costs; the least recently used kind is dropped first. */
const MAX_KINDS = 64;

interface Column {
  /** By node slot: the version of the node for which the cost was computed; 0 for none. */
  versions: Float64Array;
  primary: Float64Array;
  tieBreak: Float64Array;
}

/** More than any other cost: a suspendable pod goes where it runs without turns, if it can. */
const COST_OF_TURNS = 1e9;

/** Whether a pod with this cost has to take turns with others on its GPU. */
export function takesTurns({ primary }: PlacementCost): boolean {
  return primary >= COST_OF_TURNS / 2 && primary < Infinity;
}

const IMPOSSIBLE: PlacementCost = { primary: Infinity, tieBreak: Infinity };

/**
 * Costs on several nodes: entry i is of the i-th node. Typed arrays, because there may be thousands of nodes several
 * times a second.
 */
export interface Costs {
  readonly primary: Float64Array;
  readonly tieBreak: Float64Array;
}

/**
 * Caches the costs of pods on nodes until the node or the mix changes: between two decisions few nodes change, and most
 * pods are of a few kinds.
 */
export class CostTable {
  readonly #policy: Policy;
  #judge: Judge;
  readonly #columns = new Map<string, Column>();
  readonly #scratch = new ScratchStates();

  constructor(policy: Policy, mix: TypicalMix) {
    this.#policy = policy;
    this.#judge = policy.judge(mix, []);
  }

  /** Sets the mix and the nodes that costs are computed with. */
  useMix(mix: TypicalMix, nodes: Iterable<ClusterNode>): void {
    if (!this.#policy.usesMix) return;
    this.#judge = this.#policy.judge(mix, nodes);
    this.#columns.clear();
  }

  /** Drops the cached costs of a node, because its slot may be given to another node. */
  forget(node: ClusterNode): void {
    for (const column of this.#columns.values()) column.versions[node.slot] = 0;
  }

  /**
   * A function that is true for a node without reservations on which the pod fits according to a cached cost, so that
   * its GPUs need not be checked. False: not known.
   */
  knownFits(demand: Demand): (node: ClusterNode) => boolean {
    const column = this.#columns.get(demand.key);
    if (column === undefined) return () => false;
    const { versions, primary } = column;
    return (node) =>
      versions[node.slot] === node.version && (primary[node.slot] as number) < Infinity && !node.isReserved;
  }

  /**
   * The cost of the pod on each of the nodes, in the same order. Infinite if the pod does not fit, or if there was no
   * time to compute it.
   */
  *costs(demand: Demand, nodes: readonly ClusterNode[], pace: Pace): Turns<Costs> {
    const column = this.#column(demand.key, nodes);
    const costs = {
      primary: new Float64Array(nodes.length).fill(Infinity),
      tieBreak: new Float64Array(nodes.length).fill(Infinity),
    };
    for (let at = 0; at < nodes.length; at++) {
      const node = nodes[at] as ClusterNode;
      const { slot } = node;
      if (column.versions[slot] !== node.version) {
        if (pace.isTurnOver()) yield;
        if (pace.isSpent()) continue;
        this.#fill(column, node, demand);
      }
      costs.primary[at] = column.primary[slot] as number;
      costs.tieBreak[at] = column.tieBreak[slot] as number;
    }
    return costs;
  }

  #fill(column: Column, node: ClusterNode, demand: Demand): void {
    const after = this.#scratch.of(node);
    const cost = this.#costOf(node, after, demand);
    column.versions[node.slot] = node.version;
    column.primary[node.slot] = cost.primary;
    column.tieBreak[node.slot] = cost.tieBreak;
  }

  #costOf(node: ClusterNode, after: FreeState, demand: Demand): PlacementCost {
    const free = node.freeFor(demand);
    if (free === node.free) copyState(free, after);
    else node.copyUnshared(after);
    if (tryPod(node, after, demand)) return this.#judgeOf(demand).cost(node, after, demand);
    if (free === node.free) return IMPOSSIBLE;
    copyState(free, after);
    if (!tryPod(node, after, demand)) return IMPOSSIBLE;
    const { primary, tieBreak } = this.#judgeOf(demand).cost(node, after, demand);
    return { primary: primary + COST_OF_TURNS, tieBreak };
  }

  /** Pods may name a policy of their own, of those that need no mix. */
  #judgeOf({ selection: { nodePolicy } }: Demand): Judge {
    return nodePolicy === null ? this.#judge : policyOf(nodePolicy).judge(EMPTY_MIX, []);
  }

  #column(key: string, nodes: readonly ClusterNode[]): Column {
    const slots = nodes.reduce((most, node) => Math.max(most, node.slot + 1), 1);
    const known = this.#columns.get(key);
    const column = known === undefined || known.versions.length < slots ? newColumn(slots, known) : known;
    this.#columns.delete(key);
    this.#columns.set(key, column);
    if (this.#columns.size > MAX_KINDS) this.#columns.delete(this.#columns.keys().next().value as string);
    return column;
  }
}

function newColumn(slots: number, old: Column | undefined): Column {
  const size = Math.ceil(slots * 1.25);
  const column = {
    versions: new Float64Array(size),
    primary: new Float64Array(size),
    tieBreak: new Float64Array(size),
  };
  if (old !== undefined) {
    column.versions.set(old.versions);
    column.primary.set(old.primary);
    column.tieBreak.set(old.tieBreak);
  }
  return column;
}
