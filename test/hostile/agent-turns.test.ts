import { test } from 'tap';
import { notBuilt } from '../agent/gpus/sim/simulated-machine.js';
import { holdsAgentTurns } from './agent-turns.js';

test('no turn of an agent with 32 containers takes long', { skip: notBuilt }, (t) =>
  holdsAgentTurns(t, { containers: 32, restMs: 500, reads: 1 }),
);
