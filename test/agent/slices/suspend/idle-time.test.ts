import { test } from 'tap';
import { idleTime, type Quiet } from '../../../../src/agent/slices/suspend/idle-time.js';

const MS = 1_000_000n;
const look = (quiet: Quiet | null, now: number, worked: number, isBusy = false) =>
  idleTime(quiet, { nowNs: BigInt(now) * MS, workedAtNs: BigInt(worked) * MS, isBusy });

test('a container is idle since the last publication that none of its calls has seen', async (t) => {
  const first = look(null, 1_000, 900);
  t.match(first, { publish: true, idleMs: 0 });
  const second = look(first.quiet, 5_000, 900);
  t.match(second, { publish: false, idleMs: 4_000 });
  const third = look(second.quiet, 6_000, 5_500);
  t.match(third, { publish: true, idleMs: 0 });
  t.match(look(third.quiet, 6_500, 5_500), { publish: false, idleMs: 500 });
});

test('a GPU that works for a container without calls is not idle', async (t) => {
  t.match(look({ sinceNs: 0n }, 5_000, -1, true), { publish: true, idleMs: 0 });
});
