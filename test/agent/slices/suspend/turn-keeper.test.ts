import { test } from 'tap';
import { TurnKeeper } from '../../../../src/agent/slices/suspend/turn-keeper.js';
import type { TurnMember } from '../../../../src/gpu/turns.js';
import { silentLog } from '../../../../src/host/log.js';
import { eventually } from '../../../harness/eventually.js';
import { ManualClock } from '../../../manual-clock.js';

const HOUR_MS = 3_600_000;

/** Three containers that each want a whole GPU, of which the first runs. */
function crowded(refuses: (move: string) => string | null = () => null) {
  const clock = new ManualClock();
  const began = clock.now();
  const moves: string[] = [];
  const members = new Map(
    ['a', 'b', 'c'].map((id, at): [string, TurnMember] => [
      id,
      {
        ...{ id, priority: 'normal', cores: 100, memoryBytes: 0, transferMs: 1_000, workedMs: began + HOUR_MS },
        ...{ step: at === 0 ? 'running' : 'suspended', sinceMs: began, wantsSinceMs: at === 0 ? null : began + at },
        staysSinceMs: null,
      },
    ]),
  );
  const move = async (id: string, to: 'suspended' | 'running'): Promise<string | null> => {
    const reason = refuses(`${id} ${to}`);
    moves.push(`${id} ${reason ?? to}`);
    const before = members.get(id);
    if (before === undefined || reason !== null) return reason;
    const wantsSinceMs = to === 'running' ? null : clock.now();
    members.set(id, { ...before, step: to, sinceMs: clock.now(), wantsSinceMs });
    return null;
  };
  const keeper = new TurnKeeper({
    gpus: () => [{ uuid: 'GPU-0', cores: 100, memoryBytes: 0, members: [...members.values()] }],
    suspend: (id) => move(id, 'suspended'),
    resume: (id) => move(id, 'running'),
    clock,
    log: silentLog(),
  });
  const lookAt = async (laterMs: number, count: number): Promise<readonly string[]> => {
    clock.advance(laterMs);
    keeper.look();
    await eventually(() => moves.length >= count, `${count} moves`);
    return moves;
  };
  return { lookAt, keeper };
}

test('containers of a crowded GPU take turns in the order in which their calls asked', async (t) => {
  const { lookAt } = crowded();
  t.same(await lookAt(29_000, 0), []);
  t.same(await lookAt(1_000, 2), ['a suspended', 'b running']);
  t.same(await lookAt(29_000, 2), ['a suspended', 'b running']);
  t.same((await lookAt(1_000, 4)).slice(2), ['b suspended', 'c running']);
  t.same((await lookAt(30_000, 6)).slice(4), ['c suspended', 'a running']);
});

test('a container that cannot be suspended keeps its GPU, and is tried again later', async (t) => {
  let isStuck = true;
  const { lookAt } = crowded((move) => (isStuck && move === 'a suspended' ? 'it has managed memory' : null));
  t.same(await lookAt(30_000, 1), ['a it has managed memory']);
  t.same(await lookAt(9_000, 1), ['a it has managed memory'], 'not at once');
  isStuck = false;
  t.same((await lookAt(1_000, 3)).slice(1), ['a suspended', 'b running']);
});

test('a container that finds no room lets the next one try', async (t) => {
  const { lookAt } = crowded((move) => (move === 'b running' ? 'another program has the memory' : null));
  t.same(await lookAt(30_000, 3), ['a suspended', 'b another program has the memory', 'c running']);
});

test('nothing moves after the end', async (t) => {
  const { lookAt, keeper } = crowded();
  keeper.stop();
  t.same(await lookAt(HOUR_MS, 0), []);
});
