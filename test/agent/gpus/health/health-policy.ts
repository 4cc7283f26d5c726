import type { HealthPolicy } from '../../../../src/agent/gpus/health-policy.js';

export const MINUTE = 60_000;

/** One XID of each class. */
export const POLICY: HealthPolicy = {
  xids: new Map([
    [13, { class: 'ignored', meaning: 'graphics exception' }],
    [94, { class: 'transient', meaning: 'contained memory error' }],
    [48, { class: 'reset', meaning: 'two bits' }],
    [79, { class: 'fatal', meaning: 'off the bus' }],
  ]),
  otherwise: 'transient',
  uncorrectedEcc: 'reset',
  probationMs: MINUTE,
  longestProbationMs: 3 * MINUTE,
  strikes: 4,
  strikeWindowMs: 60 * MINUTE,
};
