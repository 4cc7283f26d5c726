/** A container writes its own counters: its entries must cost no other container anything. */
import { test } from 'tap';
import { PPM_WHOLE } from '../../src/abi/vgpu-abi.js';
import { NO_SLICES, steer, type Decision, type SliceTick } from '../../src/agent/slices/steering/steering.js';

const TICK_NS = 100_000_000;

/** What the neighbour is told after two seconds beside a container that claims the whole GPU in each tick. */
function neighbourOf(forger: Partial<SliceTick>): Decision {
  let state = NO_SLICES;
  let told: Decision | undefined;
  for (let tick = 0; tick < 20; tick += 1) {
    const answer = steer(state, {
      elapsedNs: TICK_NS,
      foreignPpm: 0,
      slices: [
        { id: 'neighbour', share: 30, softLimit: null, chargedNs: 0.3 * TICK_NS, waiting: true, reportedPpm: 300_000 },
        { id: 'forger', share: 20, softLimit: null, chargedNs: TICK_NS, waiting: false, ...forger },
      ],
    });
    state = answer.state;
    told = answer.decisions[0];
  }
  if (told === undefined) throw new Error('nothing is told');
  return told;
}

test('an idle container that claims the whole GPU does not lower the charge of its neighbour', (t) => {
  t.equal(neighbourOf({ reportedPpm: 0 }).othersPpm, 0);
  t.end();
});

test('where the driver reports nothing, a claim counts up to the share', (t) => {
  const { othersPpm } = neighbourOf({ reportedPpm: null });
  t.ok(othersPpm >= 200_000 && othersPpm <= 240_000, `the others used ${othersPpm} ppm`);
  t.end();
});

test('a claim counts up to what the driver reports, even where more was granted', (t) => {
  const { othersPpm } = neighbourOf({ softLimit: 100, waiting: true, reportedPpm: 100_000 });
  t.ok(othersPpm >= 100_000 && othersPpm <= 130_000, `the others used ${othersPpm} ppm`);
  t.end();
});

test('invalid and excessive numbers count as the maximum of a GPU', (t) => {
  for (const chargedNs of [-1, Number.MAX_SAFE_INTEGER]) {
    const { othersPpm } = neighbourOf({ chargedNs, share: 100, reportedPpm: null });
    t.ok(othersPpm >= 0 && othersPpm <= PPM_WHOLE, `${chargedNs}: ${othersPpm}`);
  }
  t.end();
});
