import { gpuCount, hasNvlink, linksBetween, subTopology, type Topology } from '../topology/topology.js';
import { buildTree, type TreeNode } from '../topology/tree.js';
import { FutureValue } from './future-value.js';
import { pcieScore } from './score.js';
import { MAX_TABLE_GPUS, SetTable } from './set-table.js';

/** The sets of GPUs by one kind of connection: the value of each set, and the future value of the remaining GPUs. */
export interface Connection {
  readonly table: SetTable;
  readonly futureValue: FutureValue;
}

/** Tables for exact answers. NVLink and PCIe have separate tables: one NVLink outweighs any PCIe nearness. */
export interface Exact {
  /** Active NVLinks. */
  readonly nvlink: Connection;
  /** PCIe and NUMA distance; more is nearer. */
  readonly pcie: Connection;
}

/** The tables that placement derives from a topology once and uses for every request. */
export interface Machine {
  readonly topology: Topology;
  readonly tree: readonly TreeNode[];
  readonly hasNvlink: boolean;
  /** Null for a machine with more GPUs than tables hold. */
  readonly exact: Exact | null;
}

/** A cache: the same topology always gives the same machine, and the entry ends with the topology. */
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

/** How many parts of one machine are cached; the oldest is dropped first. */
const MAX_PARTS = 16;

const parts = new WeakMap<Topology, Map<string, Topology>>();

/** The machine of a subset of the GPUs: its position i is `positions[i]`. */
export function partOf(topology: Topology, positions: readonly number[]): Machine {
  const known = parts.get(topology) ?? new Map<string, Topology>();
  parts.set(topology, known);
  const key = positions.join();
  const part = known.get(key) ?? subTopology(topology, positions);
  known.set(key, part);
  if (known.size > MAX_PARTS) known.delete(known.keys().next().value as string);
  return machineOf(part);
}

function exactOf(topology: Topology): Exact {
  const connection = (weigh: (a: number, b: number) => number): Connection => {
    const table = new SetTable(gpuCount(topology), weigh);
    return { table, futureValue: new FutureValue(table) };
  };
  return {
    nvlink: connection((a, b) => linksBetween(topology, a, b)),
    pcie: connection((a, b) => pcieScore(topology, a, b)),
  };
}
