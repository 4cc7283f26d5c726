import { testKilledNodes } from './killed-nodes.js';

testKilledNodes({ histories: 6, kills: 2, stepsAtLeast: 3 });
