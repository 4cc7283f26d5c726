/**
 * Loaded before a program with `node --import`: measures the turns of its event loop on orders of its parent, `start`
 * and `stop`, which is answered with the longest turn in milliseconds. See `MeteredProgram`.
 */
import { LoopMeter } from './loop-meter.js';

const meter = new LoopMeter();
process.on('message', (order: unknown) => {
  if (order === 'start') meter.start();
  process.send?.(order === 'stop' ? meter.stop() : 0);
});
// The program ends as it does without a parent that listens.
process.channel?.unref();
