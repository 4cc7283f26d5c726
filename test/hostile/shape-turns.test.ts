import { testShapeTurns } from './shape-turns.js';

testShapeTurns(10_000);
