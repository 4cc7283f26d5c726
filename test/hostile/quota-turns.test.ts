import { test } from 'tap';
import { holdsQuotaTurns } from './quota-turns.js';

test('no turn of the quota service takes long, with 1,000 workloads in a group', (t) =>
  holdsQuotaTurns(t, { workloads: 1_000, changes: 300, restMs: 1_500, reads: 3 }));
