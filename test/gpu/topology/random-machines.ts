import fc from 'fast-check';
import { LEVELS, type Level } from '../../../src/gpu/topology/level.js';
import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';

/**
 * Machines whose PCIe is a tree, as in every real one: each GPU has an address of one digit a level, and two GPUs meet
 * at the highest level in which their addresses differ.
 */
export function pcieTrees(maxCount: number): fc.Arbitrary<Topology> {
  const address = fc.tuple(fc.nat(1), fc.nat(1), fc.nat(2), fc.nat(2));
  return fc.array(address, { minLength: 1, maxLength: maxCount }).map((addresses) =>
    topologyOfPairs(addresses.length, (a, b) => ({
      level: meeting(addresses[a] ?? [], addresses[b] ?? []),
      nvlinks: 0,
    })),
  );
}

const FARTHEST_FIRST: readonly Level[] = ['SYS', 'NODE', 'PHB', 'PXB'];

function meeting(a: readonly number[], b: readonly number[]): Level {
  const at = FARTHEST_FIRST.findIndex((_, digit) => a[digit] !== b[digit]);
  return FARTHEST_FIRST[at] ?? 'PIX';
}

/** Machines of any kind, also such that no vendor builds. */
export function anyMachine(maxCount: number, maxLinks: number): fc.Arbitrary<Topology> {
  return fc.integer({ min: 1, max: maxCount }).chain((count) =>
    fc
      .array(fc.tuple(fc.constantFrom(...LEVELS.slice(1)), fc.nat(maxLinks)), {
        minLength: count * count,
        maxLength: count * count,
      })
      .map((pairs) =>
        topologyOfPairs(count, (a, b) => ({
          level: pairs[a * count + b]?.[0] ?? 'SYS',
          nvlinks: pairs[a * count + b]?.[1] ?? 0,
        })),
      ),
  );
}

/** A machine, some of its GPUs as free ones, and a number of them. */
export function situations(
  machines: fc.Arbitrary<Topology>,
): fc.Arbitrary<{ topology: Topology; free: number[]; count: number }> {
  return machines.chain((topology) =>
    fc.record({
      topology: fc.constant(topology),
      free: fc.subarray([...topology.levels.keys()], { minLength: 1 }),
      count: fc.integer({ min: 1, max: topology.levels.length }),
    }),
  );
}
