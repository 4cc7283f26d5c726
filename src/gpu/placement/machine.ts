import { gpuCount, hasNvlink, type Topology } from '../topology/topology.js';
import { buildTree, type TreeNode } from '../topology/tree.js';
import { MAX_TABLE_GPUS, SetTable } from './set-table.js';
import { FutureValue } from './future-value.js';

/** Tables for exact answers. */
export interface Exact {
  readonly table: SetTable;
  readonly futureValue: FutureValue;
}

/** What placement works out of a topology once and then uses for every request. */
export interface Machine {
  readonly topology: Topology;
  readonly tree: readonly TreeNode[];
  readonly hasNvlink: boolean;
  /** Null for a machine with more GPUs than tables hold. */
  readonly exact: Exact | null;
}

/** A memo, not state: the same topology always gives the same machine, which goes when the topology goes. */
const machines = new WeakMap<Topology, Machine>();

/** The machine of a topology. */
export function machineOf(topology: Topology): Machine {
  const known = machines.get(topology);
  if (known !== undefined) return known;
  const machine = {
    topology,
    tree: buildTree(topology),
    hasNvlink: hasNvlink(topology),
    exact: gpuCount(topology) <= MAX_TABLE_GPUS ? exactOf(topology) : null,
  };
  machines.set(topology, machine);
  return machine;
}

function exactOf(topology: Topology): Exact {
  const table = new SetTable(topology);
  return { table, futureValue: new FutureValue(table) };
}
