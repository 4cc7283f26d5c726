import { test } from 'tap';
import { outlivesAgents, skipReason } from './mortal-node.js';

test(
  'killing the agent again and again leaves the work and the limits of containers as they are, and the next agent knows them all',
  { skip: skipReason },
  (t) => outlivesAgents(t, 12, 4),
);
