import fc from 'fast-check';
import { test } from 'tap';
import { LentLevel } from '../../../../src/agent/slices/steering/lent-level.js';
import { lent, wallNs } from '../../../gpu/token-bucket.js';

const TICK_NS = 100_000_000n;
const SHARE = 40;
const SHARE_PPM = 400_000;

interface Launch {
  readonly costMs: number;
  /** Idle time before it. */
  readonly pauseMs: number;
  /** Time between the charge and the level's move, while it waits for others. */
  readonly waitMs: number;
}

/** A container whose library moves the level as the law says; whether each tick believed it. */
function ticksOf(launches: readonly Launch[]): boolean[] {
  const level = new LentLevel();
  const believed: boolean[] = [];
  let nowNs = 1_000_000_000n;
  let tickNs = nowNs;
  let [lentAtNs, chargedNs, toldNs] = [nowNs, 0, 0];
  const pass = (ms: number): void => {
    nowNs += BigInt(Math.round(ms * 1e6));
    for (; tickNs + TICK_NS <= nowNs; tickNs += TICK_NS) {
      const tick = { nowNs: tickNs + TICK_NS, lentAtNs, chargedNs: chargedNs - toldNs };
      believed.push(level.believes({ ...tick, share: SHARE, correctionPpm: 1_000_000 }));
      toldNs = chargedNs;
    }
  };
  for (const { costMs, pauseMs, waitMs } of launches) {
    const costNs = costMs * 1e6;
    pass(pauseMs);
    chargedNs += costNs;
    pass(waitMs);
    lentAtNs = lent(lentAtNs, nowNs, wallNs(BigInt(costNs), SHARE_PPM, 0));
    pass(costMs);
  }
  return believed;
}

test('what the library of a container publishes is believed, whatever it launches and waits for', (t) => {
  const launch = fc.record({
    costMs: fc.integer({ min: 1, max: 60 }),
    pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })),
    waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 500 })),
  });
  fc.assert(
    fc.property(fc.array(launch, { minLength: 20, maxLength: 200 }), (launches) => ticksOf(launches).every(Boolean)),
    { numRuns: 300 },
  );
  t.end();
});

test('a level that says lending while more than the share is used is not believed', (t) => {
  const level = new LentLevel();
  let nowNs = 5_000_000_000n;
  const tick = (usedPart: number, lentAtNs: bigint): boolean => {
    nowNs += TICK_NS;
    const chargedNs = usedPart * Number(TICK_NS);
    return level.believes({ nowNs, lentAtNs, chargedNs, share: SHARE, correctionPpm: 1_000_000 });
  };
  const ticks = (count: number, usedPart: number): boolean[] =>
    Array.from({ length: count }, () => tick(usedPart, nowNs + TICK_NS - 100_000_000n));
  t.ok(ticks(50, 0.4).every(Boolean), 'its share is its own');
  const lying = ticks(50, 0.8);
  t.ok(lying.indexOf(false) <= 8, 'it is noticed in less than a second');
  t.notOk(lying.slice(8).some(Boolean), 'as long as it lasts');
  t.notOk(tick(0.4, nowNs + TICK_NS));
  t.ok(ticks(30, 0.4).at(-1), 'and forgotten two seconds after it ended');
  t.end();
});
