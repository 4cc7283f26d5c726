import { testKilledNodes } from './killed-nodes.js';

testKilledNodes({ histories: 16, kills: 4, stepsAtLeast: 10 });
