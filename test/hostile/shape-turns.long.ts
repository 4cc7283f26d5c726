import { testShapeTurns } from './shape-turns.js';

testShapeTurns(100_000);
