import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { UseDays } from '../../../src/agent/node/use-days.js';
import { reasonOf, UseRecord, type HeldGpu } from '../../../src/agent/node/use-record.js';
import type { UseMoment } from '../../../src/agent/node/view.js';
import { silentLog } from '../../../src/host/log.js';
import { scratchDirectory } from '../../scratch.js';

const START = Date.parse('2026-11-27T23:50:00Z');
const SECOND = 1_000;
const HOUR = 3_600_000;
const TRAIN = { podUid: 'u1', namespace: 'vision', pod: 'train', container: 'main' };

type Slice = UseMoment['allocations'][number]['slices'][number];

function slice(usedPercent: number, launches = 0, changes: Partial<Slice> = {}): Slice {
  return {
    ...{ gpuUuid: 'GPU-0', usedPercent, usedMemoryBytes: 0, priority: 'normal', borrows: false },
    counters: { launches, throttledSeconds: 0 },
    ...changes,
  };
}

const moment = (atMs: number, ...slices: readonly Slice[]): UseMoment => ({
  ...{ atMs, gpus: [] },
  allocations: slices.length === 0 ? [] : [{ id: 'a', owner: TRAIN, slices }],
});

async function opened(t: Test, now = START, held: readonly HeldGpu[] = []) {
  const directory = join(await scratchDirectory(t), 'use');
  const days = await UseDays.open(directory, now, silentLog());
  t.teardown(() => days.write(now));
  return { directory, days, record: new UseRecord({ days, held: () => held }) };
}

test('the last use is the last moment with GPU time or launches, and survives a restart of the agent', async (t) => {
  const { record, days, directory } = await opened(t);
  const last = () => record.lastUsedMs(TRAIN, 'GPU-0');
  t.equal(last(), null, 'not observed yet');
  record.add(moment(START, slice(0)));
  t.equal(last(), null, 'never used');
  record.add(moment(START + 2 * SECOND, slice(40, 10)));
  record.add(moment(START + 4 * SECOND, slice(0, 12)));
  t.equal(last(), START + 4 * SECOND, 'launches between two samples');
  record.add(moment(START + 60 * SECOND, slice(0, 12)));
  t.equal(last(), START + 4 * SECOND);
  await days.write(START + 60 * SECOND);

  const again = new UseRecord({ days: await UseDays.open(directory, START + HOUR, silentLog()), held: () => [] });
  again.add(moment(START + HOUR, slice(0, 12)));
  t.equal(again.lastUsedMs(TRAIN, 'GPU-0'), START + 4 * SECOND);
  const later = new UseRecord({ days: await UseDays.open(directory, START + HOUR, silentLog()), held: () => [] });
  later.add(moment(START + HOUR, slice(0, 99)));
  t.equal(later.lastUsedMs(TRAIN, 'GPU-0'), START + HOUR, 'launches that no agent saw count as now');
  later.add(moment(START + HOUR + SECOND, slice(0, 0, { gpuUuid: 'GPU-1' })));
  t.equal(later.lastUsedMs(TRAIN, 'GPU-0'), null, 'a container that ended is forgotten');
});

test('GPU-hours are summed by container and hour, over days and restarts, and kept for 35 days', async (t) => {
  const held = [{ owner: TRAIN, quotaGroup: 'team', cores: 50, gpus: [0] }];
  const { record, days, directory } = await opened(t, START, held);
  for (let at = START; at <= START + 1_200 * SECOND; at += 2 * SECOND) record.add(moment(at, slice(25)));
  const near = (value: number | undefined, wanted: number, what: string): void => {
    t.ok(Math.abs((value ?? 0) - wanted) <= wanted * 0.02, `${what}: ${value} s, expected ${wanted} s`);
  };
  const all = await record.hours(START);
  t.equal(all.fromMs, Date.parse('2026-11-27T23:00:00Z'));
  t.match(all.containers, [{ ...TRAIN, quotaGroup: 'team', gpus: [0] }]);
  near(all.containers[0]?.allocatedSeconds, 600, 'half a GPU for twenty minutes');
  near(all.containers[0]?.usedSeconds, 300, 'a quarter of a GPU');
  near((await record.hours(Date.parse('2026-11-28T00:00:00Z'))).containers[0]?.usedSeconds, 150, 'today');
  const end = START + 1_200 * SECOND;
  await days.write(end);
  await writeFile(join(directory, '2026-10-01.json'), '{}');
  await writeFile(join(directory, '2026-11-20.json'), 'not JSON');
  await days.write(end);
  t.same((await readdir(directory)).sort(), ['2026-11-20.json', '2026-11-27.json', '2026-11-28.json', 'last-use.json']);
  const again = await UseDays.open(directory, end, silentLog());
  near((await again.since(0)).containers[0]?.usedSeconds, 300, 'after a restart');
});

test('the last minutes of a pod say how long it was throttled, and why; time of several threads counts once', async (t) => {
  const { record } = await opened(t);
  const throttled = (throttledSeconds: number) => slice(30, 0, { counters: { launches: 0, throttledSeconds } });
  const from = Date.parse('2026-11-28T00:00:00Z');
  record.add(moment(from, throttled(0)));
  for (let second = 2; second <= 60; second += 2) record.add(moment(from + second * SECOND, throttled(second * 4)));
  t.match(record.minutes('vision', 'train', 0), [
    {
      owner: TRAIN,
      gpuUuid: 'GPU-0',
      minutes: [{ atMs: from, seconds: 58, memoryBytes: 0, throttled: { share: 58, priority: 0 } }, {}],
    },
  ]);
  t.match(record.minutes('vision', 'train', from + 60 * SECOND), [
    { minutes: [{ atMs: from + 60 * SECOND, seconds: 2 }] },
  ]);
  t.same(record.minutes('vision', 'other', 0), []);
  for (let minute = 2; minute <= 200; minute++) record.add(moment(from + minute * 60 * SECOND, slice(0)));
  t.equal(record.minutes('vision', 'train', 0)[0]?.minutes.length, 181, 'three hours are kept');
});

test('a slice is throttled by a busy neighbour of high priority, by what it borrowed, or by its own share', (t) => {
  const low = slice(5, 0, { priority: 'low' });
  const high = (usedPercent: number) => slice(usedPercent, 0, { priority: 'high' });
  const borrower = slice(20, 0, { borrows: true });
  t.equal(reasonOf(low, [low, high(60)]), 'priority');
  t.equal(reasonOf(low, [low, high(0)]), 'share', 'an idle neighbour takes nothing');
  t.equal(reasonOf(borrower, [borrower, slice(50, 0, { borrows: true })]), 'lending');
  t.equal(reasonOf(borrower, [borrower, high(10)]), 'lending');
  t.equal(reasonOf(borrower, [borrower, slice(50)]), 'share');
  t.equal(reasonOf(slice(30), [slice(30), high(60)]), 'share');
  t.end();
});
