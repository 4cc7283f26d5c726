import fc from 'fast-check';
import { test } from 'tap';
import { priorities as prioritiesOf } from '../../../src/cluster/placement/priorities.js';

const priorities = (costs: readonly { readonly primary: number; readonly tieBreak: number }[]): number[] =>
  prioritiesOf({
    primary: Float64Array.from(costs, ({ primary }) => primary),
    tieBreak: Float64Array.from(costs, ({ tieBreak }) => tieBreak),
  });

const cost = (primary: number, tieBreak = 0) => ({ primary, tieBreak });

test('only the cheapest nodes score ten, and the most expensive nodes score zero', (t) => {
  t.same(priorities([cost(3), cost(1), cost(1), cost(2), cost(1.01)]), [0, 10, 10, 5, 9]);
  t.end();
});

test('the tieBreak cost decides between nodes of equal primary cost', (t) => {
  t.same(priorities([cost(1, 4), cost(1, 2), cost(1, 3)]), [0, 10, 5]);
  t.end();
});

test('all nodes score ten if all cost the same, and zero if the pod fits nowhere', (t) => {
  t.same(priorities([cost(1), cost(1)]), [10, 10]);
  t.same(priorities([cost(Infinity, Infinity)]), [0]);
  t.same(priorities([cost(Infinity, Infinity), cost(5)]), [0, 10]);
  t.same(priorities([]), []);
  t.end();
});

test('scores are whole numbers from 0 to 10, in the order of the costs', (t) => {
  const some = fc.array(
    fc.record({ primary: fc.integer({ min: -100, max: 100 }), tieBreak: fc.integer({ min: 0, max: 100 }) }),
    { minLength: 1, maxLength: 20 },
  );
  const check = fc.property(some, (costs) => {
    const scores = priorities(costs);
    const inRange = scores.every((score) => Number.isInteger(score) && score >= 0 && score <= 10);
    return (
      inRange &&
      costs.every((a, i) =>
        costs.every((b, k) => a.primary >= b.primary || (scores[i] as number) >= (scores[k] as number)),
      )
    );
  });
  t.doesNotThrow(() => fc.assert(check, { numRuns: 500 }));
  t.end();
});
