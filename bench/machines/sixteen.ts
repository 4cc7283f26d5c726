import type { Level } from '../../src/gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../src/gpu/topology/topology.js';
import { CUBE_MESH_LINKS } from '../../test/gpu/topology/machines.js';

const COUNT = 16;

/** PCIe of large servers: pairs behind a switch, quads behind several switches, eight GPUs to a socket. */
function pcie(a: number, b: number): Level {
  if (a >> 1 === b >> 1) return 'PIX';
  if (a >> 2 === b >> 2) return 'PXB';
  return a >> 3 === b >> 3 ? 'NODE' : 'SYS';
}

function meshLinks(a: number, b: number): number {
  if (a >> 3 !== b >> 3) return 0;
  return CUBE_MESH_LINKS.find(([x, y]) => x === (a & 7) && y === (b & 7))?.[2] ?? 0;
}

/** A generator with the same numbers in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 0x7fff_ffff;
  };
}

function anything(): Topology {
  const next = numbers(7);
  return topologyOfPairs(COUNT, (a, b) => ({
    level: pcie(a, b),
    nvlinks: next() < 0.5 ? 0 : 1 + Math.floor(next() * 2),
  }));
}

/** Machines of 16 GPUs: common products, and one irregular machine, which is the hardest to search. */
export const SIXTEEN: Readonly<Record<string, Topology>> = {
  'PCIe only': topologyOfPairs(COUNT, (a, b) => ({ level: pcie(a, b), nvlinks: 0 })),
  'NVLink bridges': topologyOfPairs(COUNT, (a, b) => ({ level: pcie(a, b), nvlinks: a >> 1 === b >> 1 ? 4 : 0 })),
  'two cube meshes': topologyOfPairs(COUNT, (a, b) => ({ level: pcie(a, b), nvlinks: meshLinks(a, b) })),
  NVSwitch: topologyOfPairs(COUNT, (a, b) => ({ level: pcie(a, b), nvlinks: 6 })),
  'random links': anything(),
};
