import { test } from 'tap';
import { holdsConsoleTurns } from './console-turns.js';

test('no turn of a console of 5,000 nodes with 40,000 pods takes long', (t) =>
  holdsConsoleTurns(t, { nodes: 5_000, changeMs: 6_000 }));
