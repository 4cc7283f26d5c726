import fc from 'fast-check';
import { test } from 'tap';
import { bitsOf, lowest, nextOfSize, positionsOf, size } from '../../../src/gpu/placement/bit-set.js';
import { subsets } from './exhaustive.js';

const anySet = fc
  .uniqueArray(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 12 })
  .map((positions) => positions.sort((a, b) => a - b));

test('bits and positions describe the same set', (t) => {
  fc.assert(
    fc.property(anySet, (positions) => {
      const bits = bitsOf(positions);
      return (
        String(positionsOf(bits)) === String(positions) &&
        size(bits) === positions.length &&
        lowest(bits) === positions[0]
      );
    }),
  );
  t.equal(bitsOf([]), 0);
  t.same(positionsOf(0), []);
  t.end();
});

test('the sets of one size are listed once, in ascending order', (t) => {
  for (const count of [1, 2, 3, 8, 15, 16]) {
    const seen: number[] = [];
    for (let set = (1 << count) - 1; set < 1 << 16; set = nextOfSize(set)) seen.push(set);
    const all = subsets([...Array(16).keys()], count).map(bitsOf);
    t.same(
      seen,
      all.sort((a, b) => a - b),
      `${count} of 16`,
    );
  }
  t.end();
});
