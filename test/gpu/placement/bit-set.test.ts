import fc from 'fast-check';
import { test } from 'tap';
import { bitsOf, eachSubset, lowest, positionsOf, size } from '../../../src/gpu/placement/bit-set.js';
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

test('each subset is listed once, lowest first', (t) => {
  fc.assert(
    fc.property(anySet, fc.integer({ min: 0, max: 5 }), (positions, count) => {
      const seen: string[] = [];
      eachSubset(bitsOf(positions), count, (subset) => seen.push(String(positionsOf(subset))));
      return seen.join(';') === subsets(positions, count).map(String).join(';');
    }),
    { numRuns: 50 },
  );
  t.pass('the test lists the subsets of 50 sets');
  t.end();
});
