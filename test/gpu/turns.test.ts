import fc from 'fast-check';
import { test } from 'tap';
import { simulateTurns, type Program } from '../../bench/turns/simulation.js';
import { PRIORITIES } from '../../src/gpu/priority.js';
import {
  LONGEST_WAIT_MS,
  PATIENCE_MS,
  nextTurn,
  restAfter,
  SHORTEST_TURN_MS,
  TRANSFERS_IN_TURN,
  type TurnMember,
} from '../../src/gpu/turns.js';
import { cases } from '../cases.js';

const GIB = 2 ** 30;
const GPU = { cores: 100, memoryBytes: 80 * GIB };
/** As users measured it. */
const BYTES_PER_MS = 6e9 / 1_000;
const HOUR_MS = 3_600_000;
const NOW_MS = 10 * HOUR_MS;

function member(id: string, differing: Partial<TurnMember> = {}): TurnMember {
  const step = differing.wantsSinceMs === undefined ? 'running' : 'suspended';
  return {
    ...{ id, priority: 'normal', cores: 100, memoryBytes: 10 * GIB, step, sinceMs: NOW_MS - HOUR_MS },
    ...{ transferMs: 1_000, wantsSinceMs: null, workedMs: NOW_MS, staysSinceMs: null },
    ...differing,
  };
}

const waiting = (id: string, sinceMs: number, differing: Partial<TurnMember> = {}): TurnMember =>
  member(id, { wantsSinceMs: NOW_MS - sinceMs, ...differing });

const turn = (...members: readonly TurnMember[]) => nextTurn({ ...GPU, restsUntilMs: 0 }, members, NOW_MS);

test('a container runs on while nobody waits, and gives way when its turn is over', (t) => {
  t.match(turn(member('a'), member('b', { step: 'suspended' })), { suspend: [], resume: null, againMs: null });
  t.match(turn(member('a'), waiting('b', 1)), { suspend: ['a'], resume: 'b' });
  t.match(turn(member('a', { cores: 50 }), waiting('b', 1, { cores: 50 })), { suspend: [], resume: 'b' });
  t.end();
});

test('a turn lasts 30 s or twenty transfers, whichever is longer, and less for a container without work', (t) => {
  const began = NOW_MS - 10_000;
  const other = waiting('b', 1);
  for (const [transferMs, workedMs, againMs] of [
    [1_000, NOW_MS, NOW_MS + 10_000],
    [1, NOW_MS, NOW_MS + 5_000],
    [5_000, NOW_MS, began + 5_000 * TRANSFERS_IN_TURN],
    [1_000, began, began + 1_000 * TRANSFERS_IN_TURN],
  ] as const)
    t.match(
      turn(member('a', { sinceMs: began, transferMs, workedMs }), other),
      { suspend: [], againMs },
      `${transferMs}`,
    );
  const works = member('a', { sinceMs: NOW_MS - SHORTEST_TURN_MS + 1_000, transferMs: 1 });
  t.match(turn(works, other), { suspend: [], againMs: NOW_MS + 1_000 });
  t.match(turn(member('a', { sinceMs: began, transferMs: 1, workedMs: began }), other), { suspend: ['a'] });
  t.end();
});

test('the most important goes first, then the oldest, and before all who waits for ten minutes', (t) => {
  const a = member('a');
  t.match(turn(a, waiting('b', 5), waiting('c', 9)), { resume: 'c' });
  t.match(turn(a, waiting('b', 5, { priority: 'high' }), waiting('c', 9)), { resume: 'b' });
  const old = waiting('c', LONGEST_WAIT_MS, { priority: 'low' });
  t.match(turn(a, waiting('b', 5, { priority: 'high' }), old), { resume: 'c' });
  t.end();
});

test('a container that must run, captures or communicates keeps its GPU', (t) => {
  t.match(turn(member('a', { staysSinceMs: 0 }), waiting('b', 1)), { suspend: [], resume: null, againMs: null });
  const half = { cores: 50 };
  t.match(turn(member('a', { ...half, staysSinceMs: 0 }), member('b', half), waiting('c', 1, half)), {
    suspend: ['b'],
    resume: 'c',
  });
  t.end();
});

test('a GPU rests after a move ten times as long as that took', (t) => {
  const restsUntilMs = restAfter(NOW_MS - 100_000, NOW_MS - 5_000, 1_000);
  t.equal(restsUntilMs, NOW_MS + 5_000);
  t.equal(restAfter(restsUntilMs, NOW_MS, 500), NOW_MS + 10_000, 'moves add up');
  t.match(nextTurn({ ...GPU, restsUntilMs }, [member('a'), waiting('b', 1)], NOW_MS), {
    ...{ suspend: [], resume: null, againMs: restsUntilMs },
  });
  t.end();
});

test('while one moves, nothing is decided', (t) => {
  t.match(turn(member('a', { step: 'moving' }), waiting('b', 1)), { suspend: [], resume: null, againMs: null });
  t.end();
});

test('no more give way than needed, the least important first', (t) => {
  const part = (id: string, cores: number, priority: TurnMember['priority'] = 'normal') =>
    member(id, { cores, priority });
  t.match(turn(part('a', 30), part('b', 70), waiting('c', 1, { cores: 60 })), { suspend: ['b'], resume: 'c' });
  const others = [part('a', 20), part('b', 20), part('c', 60)];
  t.same(turn(...others, waiting('d', 1, { cores: 70 })).suspend.length, 2, 'each of two is too many, but not both');
  t.match(turn(part('a', 50, 'high'), part('b', 50, 'low'), waiting('c', 1, { cores: 50 })), {
    suspend: ['b'],
    resume: 'c',
  });
  t.end();
});

test('room that the first who waits does not need goes to those after it', (t) => {
  const began = NOW_MS - 1_000;
  const holder = member('a', { cores: 60, sinceMs: began });
  const small = waiting('c', 1, { cores: 20 });
  t.match(turn(holder, waiting('b', 9, { cores: 80 }), small), { suspend: [], resume: 'c' });
  t.match(
    turn(holder, waiting('b', 9, { cores: 90 }), small),
    { suspend: [], resume: null },
    'it would delay the first',
  );
  const stays = { ...holder, staysSinceMs: 0 };
  t.match(turn(stays, waiting('b', 9, { cores: 90 }), small), { resume: 'c' }, 'the first has no room in any case');
  t.end();
});

test('while a container captures, the room of the first who waits is kept for it, for a minute', (t) => {
  const captures = (forMs: number) => member('a', { cores: 60, staysSinceMs: NOW_MS - forMs });
  const small = waiting('c', 1, { cores: 20 });
  t.match(turn(captures(1_000), waiting('b', 9, { cores: 90 }), small), {
    resume: null,
    againMs: NOW_MS + PATIENCE_MS - 1_000,
  });
  t.match(turn(captures(PATIENCE_MS), waiting('b', 9, { cores: 90 }), small), { resume: 'c', againMs: null });
  t.end();
});

const notebook = (id: string, memoryGib = 20): Program => ({
  ...{ id, priority: 'normal', cores: 100, memoryBytes: memoryGib * GIB, workMs: Infinity, pauseMs: 0 },
});

test('three notebooks that work all the time do together at least 90 % of one alone, in equal parts', (t) => {
  for (const memoryGib of [4, 20, 80]) {
    const programs = ['a', 'b', 'c'].map((id) => notebook(id, memoryGib));
    const {
      programs: done,
      transferMs,
      elapsedMs,
      faults,
    } = simulateTurns(GPU, programs, {
      bytesPerMs: BYTES_PER_MS,
      elapsedMs: 12 * HOUR_MS,
    });
    const worked = done.map(({ workedMs }) => workedMs);
    const sum = worked.reduce((all, one) => all + one, 0);
    t.same(faults, []);
    t.ok(sum >= 0.9 * elapsedMs, `${memoryGib} GiB: ${Math.round((100 * sum) / elapsedMs)} %`);
    t.ok(transferMs <= 0.1 * elapsedMs, `${memoryGib} GiB: transfers take ${transferMs} of ${elapsedMs} ms`);
    t.ok(Math.min(...worked) >= 0.95 * Math.max(...worked), worked.join());
  }
  t.end();
});

test('a notebook that works now and then hardly waits beside one that does so too', (t) => {
  const program = (id: string): Program => ({ ...notebook(id, 4), workMs: 5_000, pauseMs: 120_000 });
  const options = { bytesPerMs: BYTES_PER_MS, elapsedMs: 6 * HOUR_MS };
  const { programs: alone } = simulateTurns(GPU, [program('a')], options);
  const { programs: both } = simulateTurns(GPU, [program('a'), { ...program('b'), pauseMs: 95_000 }], options);
  t.ok((both[0]?.workedMs ?? 0) >= 0.8 * (alone[0]?.workedMs ?? Infinity));
  t.end();
});

const program: fc.Arbitrary<Omit<Program, 'id'>> = fc.record(
  {
    priority: fc.constantFrom(...PRIORITIES),
    cores: fc.constantFrom(10, 30, 50, 70, 100),
    memoryBytes: fc.integer({ min: 1, max: 80 }).map((gib) => gib * GIB),
    workMs: fc.oneof(fc.constant(Infinity), fc.integer({ min: 1_000, max: 200_000 })),
    pauseMs: fc.integer({ min: 1_000, max: 600_000 }),
    busy: fc.record({ everyMs: fc.integer({ min: 5_000, max: 60_000 }), forMs: fc.integer({ min: 1, max: 4_000 }) }),
  },
  { requiredKeys: ['priority', 'cores', 'memoryBytes', 'workMs', 'pauseMs'] },
);

test('whatever the programs do, nobody starves, the GPU has room, and transfers take at most a tenth of the time', (t) => {
  fc.assert(
    fc.property(fc.array(program, { minLength: 2, maxLength: 6 }), fc.constantFrom(6, 24), (list, gigabytes) => {
      // Two that must give way together, and of which each captures whenever the other does not, keep a third waiting.
      const first = list.findIndex(({ busy }) => busy !== undefined);
      const programs = list.map(({ busy, ...one }, at): Program => {
        return { ...one, id: `p${at}`, ...(busy === undefined || at !== first ? {} : { busy }) };
      });
      const elapsedMs = 2 * HOUR_MS;
      const bytesPerMs = (gigabytes * 1e9) / 1_000;
      const result = simulateTurns(GPU, programs, { bytesPerMs, elapsedMs });
      const transfers = programs.map(({ memoryBytes }) => Math.ceil(memoryBytes / bytesPerMs));
      const all = transfers.reduce((sum, one) => sum + one, 0);
      // A turn may end up to 60 s late, until a program may be suspended, and waits for the rest of the GPU.
      const longestTurnMs = Math.max(SHORTEST_TURN_MS, TRANSFERS_IN_TURN * all) + 60_000 + 22 * all;
      const mostMs = LONGEST_WAIT_MS + programs.length * longestTurnMs;
      const faults = [
        ...result.faults,
        ...(result.transferMs > 0.1 * elapsedMs + 2 * all ? [`transfers took ${result.transferMs} ms`] : []),
        ...result.programs.flatMap(({ id, longestWaitMs, shortestTurnMs }, at) => [
          ...(longestWaitMs > mostMs ? [`${id} waited ${longestWaitMs} of ${mostMs} ms`] : []),
          ...(shortestTurnMs < TRANSFERS_IN_TURN * (transfers[at] ?? 0) ? [`a turn of ${id}: ${shortestTurnMs}`] : []),
        ]),
      ];
      if (faults.length > 0) throw new Error(faults.join('; '));
    }),
    { numRuns: cases(30, 1_000) },
  );
  t.end();
});
