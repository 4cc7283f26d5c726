import { test } from 'tap';
import { History } from '../../../src/agent/display/history.js';
import { Journal } from '../../../src/agent/node/journal.js';
import { ManualClock } from '../../manual-clock.js';
import { allocation, gpu, node, slice } from './fixture.js';

test('events are numbered, kept up to a limit, and queried by number', (t) => {
  const clock = new ManualClock();
  const journal = new Journal(clock, 3);
  for (const message of ['a', 'b', 'c', 'd']) journal.note({ level: 'info', kind: 'K', message });
  t.same(
    journal.after(0).map(({ message, sequence }) => [message, sequence]),
    [
      ['b', 2],
      ['c', 3],
      ['d', 4],
    ],
  );
  t.same(
    journal.after(3).map(({ message }) => message),
    ['d'],
  );
  t.same(
    journal.after(0, 1).map(({ message }) => message),
    ['d'],
  );
  t.equal(journal.sequence, 4);
  t.end();
});

test('a repeated event increments its count and moves to the end, so it does not displace the other events', (t) => {
  const clock = new ManualClock();
  const journal = new Journal(clock);
  journal.note({ level: 'info', kind: 'Started', message: 'x', allocation: '1' });
  for (let times = 0; times < 1000; times++) {
    clock.advance(1000);
    journal.note({ level: 'warning', kind: 'Refused', message: 'nothing fits' });
  }
  journal.note({ level: 'info', kind: 'Started', message: 'x', allocation: '2' });
  t.match(journal.after(0), [
    { kind: 'Started', count: 1 },
    { kind: 'Refused', count: 1000, atMs: clock.now() },
    { kind: 'Started', allocation: '2', count: 1 },
  ]);
  t.equal(journal.after(0).length, 3);
  t.end();
});

test('an event that repeats or names its pod later tells which entry it replaces', (t) => {
  const journal = new Journal(new ManualClock());
  const owner = { podUid: 'u', namespace: 'team', pod: 'web', container: '' };
  const refused = { level: 'warning', kind: 'Refused', message: 'nothing fits' } as const;
  const named = { ...refused, message: 'team/web: nothing fits', owner };
  journal.note(refused);
  journal.note(refused);
  t.match(journal.after(0), [{ sequence: 2, replaces: 1, count: 2 }]);
  journal.noteOwner(named, refused.message);
  t.match(journal.after(0), [{ sequence: 3, replaces: 2, count: 1, message: 'team/web: nothing fits', owner }]);
  journal.noteOwner(named, refused.message);
  t.match(journal.after(0), [{ sequence: 4, replaces: 3, count: 2 }], 'the same pod again');
  journal.noteOwner({ ...named, message: 'team/job: nothing fits', owner: { ...owner, pod: 'job' } }, refused.message);
  t.match(journal.after(0), [{ sequence: 4 }, { sequence: 5, count: 1 }], 'another pod is another event');
  t.notOk('replaces' in (journal.after(4)[0] ?? {}));
  t.end();
});

test('the history of a container holds percent, MiB and launch waiting time, from its start to its end', (t) => {
  const history = new History();
  const one = gpu(0);
  const at = (atMs: number, throttledSeconds: number | null) => {
    const counters = { ...slice(one).counters!, throttledSeconds: throttledSeconds ?? 0 };
    history.add(
      node({
        atMs,
        gpus: [one],
        allocations:
          throttledSeconds === null
            ? []
            : [allocation('a', [slice(one, { counters, usedPercent: 12.34, usedMemoryBytes: 3 * 2 ** 20 })])],
      }),
    );
  };
  const { id } = allocation('a', []);
  at(0, null);
  at(2_000, 100);
  at(2_500, 100.2);
  at(4_000, 101);
  at(6_000, 101);
  t.same(
    history.slices(id),
    [{ gpuUuid: one.uuid, used: [12.3, 12.3, 12.3], memory: [3, 3, 3], throttled: [0, 0.5, 0] }],
    'waiting time from before the first sample does not count',
  );
  t.equal(history.gpus()[one.uuid]?.used.length, 4);
  at(8_000, null);
  t.same(history.slices(id), []);
  t.end();
});
