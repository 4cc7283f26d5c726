import { testKilledNodes } from './killed-nodes.js';

testKilledNodes({ histories: 4, kills: 2, stepsAtLeast: 2 });
