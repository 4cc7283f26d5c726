import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import {
  createEngine,
  JournalStore,
  MemoryStore,
  Quota,
  type QuotaEvent,
  type Store,
} from '../../../src/quota/index.js';

const KEY = 'limits.cpu';
const job = (name: string) => ({
  workload: { kind: 'Job', name },
  group: 'g',
  podSets: [{ count: 1, limits: { cpu: 1 } }],
});
const bug = (): never => {
  throw new Error('a bug in the listener');
};

const STORES: readonly (readonly [string, (directory: string) => Promise<Store>])[] = [
  ['in memory', async () => new MemoryStore()],
  ['on a journal', (directory) => JournalStore.open(directory)],
];

for (const [place, open] of STORES)
  test(`an engine ${place} answers every command although a listener throws`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'listeners-'));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    const failed: string[] = [];
    const told: string[] = [];
    const engine = await createEngine({
      store: await open(directory),
      clock: () => 0,
      listenerFailed: (error, { type }) => failed.push(`${type}: ${(error as Error).message}`),
    });
    engine.on(bug);
    engine.on(async () => bug());
    engine.on(({ type }) => told.push(type));
    await engine.createGroup({ name: 'g', hard: { [KEY]: 2 } });
    const codes = await Promise.all(['a', 'b', 'c'].map(async (name) => (await engine.admit(job(name))).code));
    t.same(codes, ['OK', 'OK', 'QuotaExceeded']);
    t.equal(engine.status('g')?.used.get(KEY), 2000n);
    t.same(told, ['groupCreated', 'admitted', 'admitted', 'denied'], 'the other listeners get every event');
    t.same(
      failed.sort().filter((line) => line.startsWith('denied')),
      Array(2).fill('denied: a bug in the listener'),
    );
    t.equal(failed.length, 8, 'each failure of each listener is reported');
    await engine.close();
  });

test('a listener that closes or asks the engine finds the command decided', async (t) => {
  const quota = new Quota({ clock: () => 0 });
  const seen: (readonly [string, bigint | undefined])[] = [];
  quota.on(({ type }) => {
    seen.push([type, quota.status('g')?.used.get(KEY)]);
    if (type === 'admitted' && !quota.isCharged('Job//second')) quota.admit(job('second'));
  });
  quota.createGroup({ name: 'g', hard: { [KEY]: 4 } });
  quota.admit(job('first'));
  t.same(seen, [
    ['groupCreated', 0n],
    ['admitted', 1000n],
    ['admitted', 2000n],
  ]);
  t.end();
});

test('Quota decides, charges and answers although a listener throws', (t) => {
  const failed: QuotaEvent[] = [];
  const quota = new Quota({ clock: () => 0, listenerFailed: (_, event) => failed.push(event) });
  quota.on(bug);
  quota.createGroup({ name: 'g', hard: { [KEY]: 2 } });
  t.equal(quota.admit(job('a')).code, 'OK');
  t.equal(quota.status('g')?.used.get(KEY), 1000n);
  t.equal(failed.length, 2);
  t.end();
});
