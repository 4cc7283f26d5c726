import { test } from 'tap';
import { conditionsAt, readCondition, type ConditionState } from '../../src/kube/condition.js';

const NOW = Date.UTC(2026, 10, 21, 10, 0, 0, 987);
const READY: ConditionState = {
  type: 'Ready',
  status: 'True',
  reason: 'InLedger',
  message: 'the group is in the ledger',
};

test('a condition keeps its transition time until its status changes', (t) => {
  const first = conditionsAt(NOW, [READY], undefined, 3);
  t.same(first, [{ ...READY, observedGeneration: 3, lastTransitionTime: '2026-11-21T10:00:00Z' }]);
  const reworded = conditionsAt(NOW + 60_000, [{ ...READY, message: 'still there' }], first, 4);
  t.match(reworded, [{ message: 'still there', observedGeneration: 4, lastTransitionTime: '2026-11-21T10:00:00Z' }]);
  t.match(conditionsAt(NOW + 60_000, [{ ...READY, status: 'False' }], reworded), [
    { status: 'False', lastTransitionTime: '2026-11-21T10:01:00Z' },
  ]);
  t.end();
});

test('a condition with a status from another writer is found by its type, whatever else the list contains', (t) => {
  t.equal(readCondition([null, 7, { type: 'Ready', status: 'True' }], 'Ready')?.status, 'True');
  for (const conditions of [undefined, null, 'Ready', {}, [], [{ status: 'True' }]])
    t.equal(readCondition(conditions, 'Ready'), null);
  t.end();
});
