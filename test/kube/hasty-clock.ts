import { systemClock, type Clock } from '../../src/host/clock.js';

const HASTE = 1_000;
const begin = Date.now();

/** The machine's clock, a thousand times as fast. */
export const hastyClock: Clock = {
  now: () => begin + Math.round(performance.now() * HASTE),
  after: (delayMs, action) => systemClock.after(delayMs / HASTE, action),
  every: (periodMs, action) => systemClock.every(periodMs / HASTE, action),
};
