import { test } from 'tap';
import { holdsQuotaTurns } from './quota-turns.js';

test('no turn of the quota service takes long, with 10,000 workloads in a group', (t) =>
  holdsQuotaTurns(t, { workloads: 10_000, changes: 1_000, restMs: 4_000, reads: 20 }));
