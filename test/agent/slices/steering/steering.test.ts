import fc from 'fast-check';
import { test } from 'tap';
import { PPM_WHOLE } from '../../../../src/abi/vgpu-abi.js';
import { CORRECTION_MAX_PPM, CORRECTION_MIN_PPM } from '../../../../src/gpu/share-law.js';
import {
  agreedCorrection,
  MIN_EVIDENCE_NS,
  NO_SLICES,
  steer,
  stepCorrection,
  withCorrection,
  type SliceTick,
} from '../../../../src/agent/slices/steering/steering.js';
import { runModel } from '../steered-gpu.js';

const TICK_NS = 100_000_000;

/** Containers of one GPU: the sum of their shares is at most the GPU. */
const sliceTicks: fc.Arbitrary<SliceTick[]> = fc
  .array(
    fc.record({
      share: fc.integer({ min: 1, max: 100 }),
      softLimit: fc.option(fc.integer({ min: 1, max: 100 })),
      chargedNs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: TICK_NS }),
        fc.constantFrom(-1, Number.MAX_SAFE_INTEGER, Number.NaN, null),
      ),
      waiting: fc.boolean(),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((all) => {
    let left = 100;
    return all
      .filter((one) => {
        if (one.share > left) return false;
        left -= one.share;
        return true;
      })
      .map((one, index) => ({ ...one, id: String(index) }));
  });

const ticks = fc.record({
  history: fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 4 }),
  slices: sliceTicks,
  foreignPpm: fc.integer({ min: 0, max: PPM_WHOLE }),
});

test('every grant lies between the share and the soft limit, and a hard limit has none', (t) => {
  const property = fc.property(ticks, ({ slices, foreignPpm }) => {
    const { decisions } = steer(NO_SLICES, { elapsedNs: TICK_NS, slices, foreignPpm });
    return decisions.every(({ id, grantPpm }) => {
      const slice = slices[Number(id)];
      if (slice === undefined) return false;
      const soft = slice.softLimit !== null && slice.softLimit > slice.share && slice.share < 100;
      if (!soft) return grantPpm === null;
      return grantPpm !== null && grantPpm >= slice.share * 10_000 && grantPpm <= (slice.softLimit ?? 0) * 10_000;
    });
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.end();
});

test('lent time was idle: all grants and the foreign use fit on the GPU, unless the shares alone do not', (t) => {
  const property = fc.property(ticks, ({ slices, foreignPpm }) => {
    const { state, decisions } = steer(NO_SLICES, { elapsedNs: TICK_NS, slices, foreignPpm });
    const own = (index: number): number => (slices[index]?.share ?? 0) * 10_000;
    const needs = decisions.map(({ id }, index) => Math.min(own(index), state.get(id)?.demandPpm ?? 0));
    const lent = decisions.reduce((sum, { grantPpm }, index) => sum + Math.max(0, (grantPpm ?? 0) - own(index)), 0);
    return lent <= Math.max(0, PPM_WHOLE - foreignPpm - needs.reduce((a, b) => a + b, 0));
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.end();
});

test('when all waiting containers are soft without limit, only a rounding error stays idle', (t) => {
  const property = fc.property(sliceTicks, (all) => {
    const slices = all.map((one) => ({ ...one, softLimit: 100, waiting: true })).filter((one) => one.share < 100);
    if (slices.length === 0) return true;
    const { decisions } = steer(NO_SLICES, { elapsedNs: TICK_NS, slices, foreignPpm: 0 });
    return decisions.reduce((sum, { grantPpm }) => sum + (grantPpm ?? 0), 0) > PPM_WHOLE - slices.length * 10_001;
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.end();
});

test('the order of containers changes nothing', (t) => {
  const property = fc.property(ticks, ({ slices, foreignPpm }) => {
    const one = steer(NO_SLICES, { elapsedNs: TICK_NS, slices, foreignPpm }).decisions;
    const other = steer(NO_SLICES, { elapsedNs: TICK_NS, slices: [...slices].reverse(), foreignPpm }).decisions;
    return one.every(
      ({ id, grantPpm }) =>
        Math.abs((other.find((decision) => decision.id === id)?.grantPpm ?? 0) - (grantPpm ?? 0)) <= 10_000,
    );
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }));
  t.end();
});

const slice = (id: string, changes: Partial<SliceTick> = {}): SliceTick => ({
  id,
  share: 50,
  softLimit: null,
  chargedNs: 0,
  waiting: false,
  ...changes,
});

function decide(slices: readonly SliceTick[], before = NO_SLICES, foreignPpm = 0) {
  return steer(before, { elapsedNs: TICK_NS, slices, foreignPpm });
}

test('an idle owner lends its share, and gets it back in the tick in which it waits', (t) => {
  const soft = slice('soft', { share: 30, softLimit: 90, chargedNs: 0.3 * TICK_NS, waiting: true });
  const lent = decide([soft, slice('owner', { share: 70 })]);
  t.equal(lent.decisions[0]?.grantPpm, 900_000);
  const back = decide([soft, slice('owner', { share: 70, waiting: true })], lent.state);
  t.equal(back.decisions[0]?.grantPpm, 300_000);
  t.end();
});

test('in a first tick only waiting counts: earlier usage is unknown', (t) => {
  const soft = slice('soft', { share: 30, softLimit: 90, chargedNs: 0.3 * TICK_NS, waiting: true });
  const first = decide([soft, slice('owner', { share: 70, chargedNs: null, waiting: true })]);
  t.match(first.decisions, [
    { grantPpm: 300_000, othersPpm: 0 },
    { usedPpm: 0, othersPpm: 300_000, active: true },
  ]);
  const second = decide([soft, slice('owner', { share: 70, chargedNs: 0.7 * TICK_NS, waiting: true })], first.state);
  t.match(second.decisions, [{ othersPpm: 500_000 }, { usedPpm: 700_000 }]);
  t.end();
});

test('an owner that uses a part of its share lends the rest, less some room to grow', (t) => {
  const soft = slice('soft', { share: 30, softLimit: 100, waiting: true });
  const { decisions } = decide([soft, slice('owner', { share: 70, chargedNs: 0.2 * TICK_NS })]);
  t.equal(decisions[0]?.grantPpm, 750_000);
  t.end();
});

test('an owner with rare launches is not forgotten between two of them', (t) => {
  const soft = slice('soft', { share: 30, softLimit: 100, waiting: true });
  let step = decide([soft, slice('owner', { share: 70, chargedNs: 0.5 * TICK_NS })]);
  t.equal(step.decisions[0]?.grantPpm, 390_000);
  step = decide([soft, slice('owner', { share: 70 })], step.state);
  t.equal(step.decisions[0]?.grantPpm, 630_000);
  t.equal(step.decisions[1]?.active, true);
  for (let tick = 0; tick < 12; tick += 1) step = decide([soft, slice('owner', { share: 70 })], step.state);
  t.match(step.decisions, [{ grantPpm: 1_000_000, alone: true }, { active: false }]);
  t.end();
});

test('two borrowers divide the lent time by their shares, and each may use what the other does not', (t) => {
  const one = slice('one', { share: 20, softLimit: 100, waiting: true });
  const two = slice('two', { share: 40, softLimit: 100, waiting: true });
  t.match(decide([one, two]).decisions, [{ grantPpm: 330_000 }, { grantPpm: 660_000 }]);
  t.match(decide([one, { ...two, softLimit: 50 }]).decisions, [{ grantPpm: 500_000 }, { grantPpm: 500_000 }]);
  t.match(decide([one, { ...two, waiting: false, chargedNs: 0.2 * TICK_NS }]).decisions, [
    { grantPpm: 750_000 },
    { grantPpm: 400_000 },
  ]);
  t.end();
});

test('time that foreign processes use is not lent, and a container beside them is not alone', (t) => {
  const soft = slice('soft', { share: 30, softLimit: 100, waiting: true });
  t.match(decide([soft], NO_SLICES, 250_000).decisions, [{ grantPpm: 750_000, alone: false }]);
  t.match(decide([soft]).decisions, [{ grantPpm: 1_000_000, alone: true }]);
  t.match(decide([soft, slice('idle')]).decisions, [{ alone: true }, { alone: false }]);
  t.match(decide([soft, slice('busy', { chargedNs: 1_000_000 })]).decisions, [{ alone: false }, { alone: false }]);
  t.end();
});

test('a container that reports no usage, or full usage, changes the share of no other container', (t) => {
  for (const chargedNs of [0, -5, Number.NaN, Number.MAX_SAFE_INTEGER]) {
    for (const waiting of [false, true]) {
      const { decisions } = decide([
        slice('liar', { share: 50, softLimit: 100, chargedNs, waiting }),
        slice('other', { share: 50, softLimit: 60, waiting: true }),
      ]);
      t.ok((decisions[1]?.grantPpm ?? 0) >= 500_000);
    }
  }
  t.end();
});

test('a container that is absent from a tick is forgotten', (t) => {
  const { state } = decide([slice('a', { waiting: true }), slice('b', { waiting: true })]);
  t.same([...decide([slice('b')], state).state.keys()], ['b']);
  t.end();
});

/** An account of five seconds, of many brief launches. */
const ofBriefLaunches = { elapsedNs: 5e9, reports: 5, launches: 50_000 };

test('a correction applies where the report of the driver clearly differs, and by the clear difference only', (t) => {
  let correction = PPM_WHOLE;
  for (let step = 0; step < 60; step += 1)
    correction = stepCorrection(correction, { ...ofBriefLaunches, chargedNs: 1.5e9, reportedNs: 3e9 });
  t.ok(Math.abs(correction - 1_916_667) < 2_000, `${correction}`);
  for (let step = 0; step < 60; step += 1)
    correction = stepCorrection(correction, { ...ofBriefLaunches, chargedNs: 1.5e9, reportedNs: 1.5e9 });
  t.ok(Math.abs(correction - PPM_WHOLE) < 2_000, `${correction}`);
  t.end();
});

test('a container that is charged little, and far less than it uses, is corrected', (t) => {
  let correction = PPM_WHOLE;
  for (let step = 0; step < 8; step += 1)
    correction = stepCorrection(correction, { ...ofBriefLaunches, chargedNs: 0.25e9, reportedNs: 1e9 });
  t.ok(correction > 3_500_000, `${correction}`);
  t.end();
});

test('a correction moves only as far as two accounts in a row show', (t) => {
  const wrong = { ...ofBriefLaunches, chargedNs: 1.5e9, reportedNs: 3e9 };
  const worse = { ...wrong, reportedNs: 4.5e9 };
  const right = { ...wrong, reportedNs: 1.5e9 };
  const step = stepCorrection(PPM_WHOLE, wrong);
  t.equal(agreedCorrection(PPM_WHOLE, wrong, worse), step);
  t.equal(agreedCorrection(PPM_WHOLE, worse, wrong), step);
  t.equal(agreedCorrection(PPM_WHOLE, wrong, right), PPM_WHOLE);
  t.equal(agreedCorrection(PPM_WHOLE, wrong, { ...wrong, reportedNs: 0.5e9 }), PPM_WHOLE);
  t.end();
});

test('a report that the rounding to whole percents explains corrects nothing', (t) => {
  for (const used of [0.1, 0.157, 0.3, 0.5, 0.999]) {
    const reportedNs = Math.floor(used * 100) * 5e7;
    t.equal(stepCorrection(PPM_WHOLE, { ...ofBriefLaunches, chargedNs: used * 5e9, reportedNs }), PPM_WHOLE, `${used}`);
  }
  t.end();
});

test('without a report, or with little evidence, a correction stays as it is', (t) => {
  t.equal(
    stepCorrection(1_200_000, { ...ofBriefLaunches, chargedNs: 1e8, reportedNs: MIN_EVIDENCE_NS - 1 }),
    1_200_000,
  );
  t.equal(stepCorrection(1_200_000, { ...ofBriefLaunches, chargedNs: 0, reportedNs: 5e9 }), 1_200_000);
  for (const reportedNs of [0, Number.NaN, -1])
    t.equal(stepCorrection(1_200_000, { ...ofBriefLaunches, chargedNs: 1e9, reportedNs }), 1_200_000);
  t.end();
});

test('a correction never leaves its bounds', (t) => {
  const property = fc.property(
    fc.double(),
    fc.double(),
    fc.double(),
    fc.double(),
    (chargedNs, reportedNs, elapsedNs, launches) => {
      const next = stepCorrection(PPM_WHOLE, { chargedNs, reportedNs, elapsedNs, reports: 5, launches });
      return next >= CORRECTION_MIN_PPM && next <= CORRECTION_MAX_PPM;
    },
  );
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1_000 }));
  t.end();
});

test('a correction is kept as long as its container exists', (t) => {
  const { state } = decide([slice('a', { waiting: true })]);
  const corrected = withCorrection(state, 'a', 1_500_000);
  t.equal(withCorrection(corrected, 'a', 1_500_000), corrected);
  t.equal(withCorrection(state, 'unknown', 1), state);
  t.equal(decide([slice('a')], corrected).decisions[0]?.correctionPpm, 1_500_000);
  t.end();
});

const near = (got: number | undefined, wanted: number, within: number): boolean =>
  Math.abs((got ?? NaN) - wanted) <= within;

test('on a model of a GPU, hard shares that fill it are kept, however long kernels take', (t) => {
  const used = runModel(
    [
      { share: 50, kernelUs: 200 },
      { share: 30, kernelUs: 5_000 },
      { share: 20, kernelUs: 1_000 },
    ],
    1_000,
    11_000,
  );
  t.ok(near(used[0], 0.5, 0.02) && near(used[1], 0.3, 0.02) && near(used[2], 0.2, 0.02), used.join(' '));
  t.ok(used.reduce((a, b) => a + b, 0) > 0.97, 'the GPU is used');
  t.end();
});

test('on a model of a GPU, a soft container uses the idle time and returns it at once', (t) => {
  const owner = { share: 60, kernelUs: 500, wants: (ms: number) => (ms % 4_000 < 2_000 ? 1 : 0) };
  const soft = { share: 40, softLimit: 100, kernelUs: 2_000 };
  const away = runModel([owner, soft], 2_600, 4_000);
  t.ok(near(away[1], 1, 0.03), `alone: ${away.join(' ')}`);
  const back = runModel([owner, soft], 4_200, 6_000);
  t.ok(near(back[0], 0.6, 0.02) && near(back[1], 0.4, 0.02), `together: ${back.join(' ')}`);
  t.end();
});

test('on a model of a GPU, soft containers divide all of its time by their shares', (t) => {
  const used = runModel(
    [
      { share: 10, softLimit: 100, kernelUs: 300 },
      { share: 30, softLimit: 100, kernelUs: 3_000 },
    ],
    1_000,
    9_000,
  );
  t.ok(near(used[0], 0.25, 0.02) && near(used[1], 0.75, 0.02), used.join(' '));
  t.end();
});

test('on a model of a GPU, charges that are wrong for a long time are corrected where the driver reports, and only there', (t) => {
  const slices = [{ share: 30, kernelUs: 1_000, believedUs: 500 }];
  t.ok(
    near(runModel(slices, 5_000, 15_000, false)[0], 0.6, 0.02),
    'without a report the container uses twice its share',
  );
  t.ok(near(runModel(slices, 90_000, 100_000)[0], 0.3, 0.035), 'with a report the share is nearly kept');
  t.end();
});

test('every container gets the recent usage of all others, foreign processes included, and never its own', (t) => {
  const a = (chargedNs: number): SliceTick => ({
    id: 'a',
    share: 60,
    softLimit: null,
    chargedNs,
    waiting: true,
    processes: 2,
  });
  const b: SliceTick = { id: 'b', share: 20, softLimit: null, chargedNs: 0.2 * TICK_NS, waiting: true };
  const first = steer(NO_SLICES, { elapsedNs: TICK_NS, slices: [a(0.6 * TICK_NS), b], foreignPpm: 50_000 });
  t.same(
    first.decisions.map(({ othersPpm }) => othersPpm),
    [250_000, 650_000],
  );
  // A launch of several ticks is charged in one of them.
  let state = first.state;
  const told: number[] = [];
  for (let tick = 0; tick < 60; tick += 1) {
    const next = steer(state, {
      elapsedNs: TICK_NS,
      slices: [a(tick % 2 === 0 ? TICK_NS : 0.2 * TICK_NS), b],
      foreignPpm: 0,
    });
    state = next.state;
    told.push(next.decisions[1]?.othersPpm ?? NaN);
  }
  t.ok(
    told.slice(20).every((ppm) => Math.abs(ppm - 600_000) < 60_000),
    `${Math.min(...told)} to ${Math.max(...told)}`,
  );
  const many = Array.from({ length: 4 }, (_, at): SliceTick => ({
    id: String(at),
    share: 25,
    softLimit: null,
    chargedNs: TICK_NS,
    waiting: true,
  }));
  t.ok(
    steer(NO_SLICES, { elapsedNs: TICK_NS, slices: many, foreignPpm: 0 }).decisions.every(
      ({ othersPpm }) => othersPpm >= 750_000 && othersPpm <= 900_000,
    ),
    'a container counts with its grant',
  );
  t.end();
});

test('what others use counts as far as they can use it beside a launch: by equal time slices', (t) => {
  const busy = (id: string, share: number): SliceTick => slice(id, { share, chargedNs: share * 1e6, waiting: true });
  const othersOf = (all: readonly SliceTick[], foreignPpm = 0, foreignProcesses = 1): number | undefined =>
    steer(NO_SLICES, { elapsedNs: TICK_NS, slices: all, foreignPpm, foreignProcesses }).decisions[0]?.othersPpm;
  t.equal(othersOf([busy('a', 10), busy('b', 40)]), 400_000);
  t.equal(othersOf([busy('a', 10), busy('b', 90)]), 500_000);
  t.equal(othersOf([busy('a', 10), busy('b', 60), slice('idle', { share: 30 })]), 500_000);
  t.equal(othersOf([busy('a', 10), busy('b', 60), busy('c', 30)]), 666_666);
  t.equal(othersOf([busy('a', 10), { ...busy('b', 90), processes: 3 }]), 750_000);
  t.equal(othersOf([busy('a', 10)], 990_000), 500_000);
  t.equal(othersOf([busy('a', 10)], 990_000, 2), 666_666);
  t.end();
});

test('low slices may use what high slices leave, and high slices all but the floor of the low ones', (t) => {
  const slice = (
    id: string,
    priority: 'high' | 'normal' | 'low',
    waiting: boolean,
    usedPercent: number,
  ): SliceTick => ({
    id,
    share: 30,
    softLimit: 100,
    priority,
    chargedNs: (usedPercent / 100) * TICK_NS,
    waiting,
  });
  const grants = (slices: readonly SliceTick[]) =>
    new Map(
      steer(NO_SLICES, { elapsedNs: TICK_NS, slices, foreignPpm: 0 }).decisions.map(({ id, grantPpm }) => [
        id,
        grantPpm,
      ]),
    );
  const two = grants([slice('high', 'high', true, 30), slice('low', 'low', true, 60)]);
  t.equal(two.get('high'), 950_000);
  t.equal(two.get('low'), 1_000_000);
  const three = grants([
    slice('high', 'high', true, 30),
    slice('normal', 'normal', true, 30),
    slice('low', 'low', true, 40),
  ]);
  t.equal(three.get('normal'), 330_000, 'a normal slice shares with both, as without priorities');
  t.ok((three.get('high') ?? 0) <= 650_000, 'a high slice leaves a normal one its share');
  t.ok((three.get('low') ?? 0) <= 700_000, 'a low slice leaves a normal one its share, too');
  t.end();
});

test('a container that has borrowed may use all that others do not claim, and leaves them their share when they need it', (t) => {
  const soft = (id: string, state: Partial<SliceTick>): SliceTick => ({
    id,
    share: 50,
    softLimit: 100,
    chargedNs: 0,
    waiting: false,
    givesWay: true,
    ...state,
  });
  const batch = soft('batch', { chargedNs: 0.6 * TICK_NS, waiting: true });
  const grant = (service: Partial<SliceTick>): number | null | undefined =>
    steer(NO_SLICES, { elapsedNs: TICK_NS, slices: [soft('service', service), batch], foreignPpm: 0 }).decisions[1]
      ?.grantPpm;
  t.equal(
    grant({ chargedNs: 0.3 * TICK_NS, claims: true }),
    1_000_000,
    'it gets back what it claims, launch by launch',
  );
  t.equal(grant({ chargedNs: 0.3 * TICK_NS }), 630_000, 'a container that claims nothing needs its use');
  t.equal(grant({ chargedNs: 0.5 * TICK_NS, claims: true, waiting: true }), 500_000, 'it has used up what it lent');
  t.equal(grant({ chargedNs: 0.3 * TICK_NS, claims: true, givesWay: false }), 1_000_000, 'a high one lends nothing');
  const unaware = { ...batch, givesWay: false };
  const beside = [soft('service', { chargedNs: 0.3 * TICK_NS, claims: true }), unaware];
  t.equal(
    steer(NO_SLICES, { elapsedNs: TICK_NS, slices: beside, foreignPpm: 0 }).decisions[1]?.grantPpm,
    630_000,
    'the library of an earlier version returns nothing launch by launch',
  );
  t.end();
});
