import type { Level } from '../topology/level.js';
import { linksBetween, levelBetween, type Topology } from '../topology/topology.js';

/** Score of one NVLink. */
const LINK_SCORE = 100;

/** Score of a PCIe level between GPUs without NVLink: the weights of NVIDIA's allocator. */
const LEVEL_SCORE: Readonly<Record<Level, number>> = { X: 0, PIX: 50, PXB: 40, PHB: 30, NODE: 20, SYS: 10 };

/** How well two GPUs are connected: by their NVLinks, else by PCIe. Larger is better. */
export function pairScore(topology: Topology, a: number, b: number): number {
  const links = linksBetween(topology, a, b);
  return links > 0 ? links * LINK_SCORE : pcieScore(topology, a, b);
}

/** How well two GPUs are connected by PCIe alone. */
export function pcieScore(topology: Topology, a: number, b: number): number {
  return LEVEL_SCORE[levelBetween(topology, a, b)];
}

/** How well a set of GPUs is connected: the sum over its pairs. */
export function setScore(topology: Topology, positions: readonly number[]): number {
  let sum = 0;
  for (const [at, a] of positions.entries()) {
    for (const b of positions.slice(at + 1)) sum += pairScore(topology, a, b);
  }
  return sum;
}

/** One NVLink score outweighs every PCIe sum of 16 GPUs (120 pairs x 50 at most). */
const SCORE_UNIT = 8192;

/** Finer than `pairScore`: PCIe decides between sums of equal score. */
export function fineScore(topology: Topology, a: number, b: number): number {
  return pairScore(topology, a, b) * SCORE_UNIT + pcieScore(topology, a, b);
}
