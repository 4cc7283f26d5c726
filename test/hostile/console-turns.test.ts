import { test } from 'tap';
import { holdsConsoleTurns } from './console-turns.js';

test('no turn of a console of 500 nodes takes long', (t) => holdsConsoleTurns(t, { nodes: 500, changeMs: 1_000 }));
