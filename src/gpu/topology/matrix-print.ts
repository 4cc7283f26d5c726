import { gpuCount, levelBetween, linksBetween, type Topology } from './topology.js';

/** The label of a pair in a matrix: `X`, its NVLinks, else its PCIe level. */
export function pairLabel(topology: Topology, a: number, b: number): string {
  const links = linksBetween(topology, a, b);
  return links > 0 ? `NV${links}` : levelBetween(topology, a, b);
}

/**
 * Prints a topology in the format of `nvidia-smi topo -m`, without unknown columns; `indexes[i]` is the number in the
 * name of the GPU at position i. `parseMatrix` reads it back.
 */
export function printMatrix(topology: Topology, indexes: readonly number[]): string {
  const count = gpuCount(topology);
  if (indexes.length !== count) throw new RangeError(`${indexes.length} indexes for ${count} GPUs`);
  const rows = [
    ['', ...indexes.map((index) => `GPU${index}`)],
    ...indexes.map((index, a) => [
      `GPU${index}`,
      ...indexes.map((_, b) => (a === b ? ' X' : pairLabel(topology, a, b))),
    ]),
  ];
  const width = Math.max(...rows.flat().map((cell) => cell.length));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell) => cell.padEnd(width))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}
