import { test } from 'tap';
import { notBuilt } from '../agent/gpus/sim/simulated-machine.js';
import { holdsAgentTurns } from './agent-turns.js';

test('no turn of an agent with 256 containers takes long', { skip: notBuilt }, (t) =>
  holdsAgentTurns(t, { containers: 256, restMs: 5_000, reads: 5 }),
);
