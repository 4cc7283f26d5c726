import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { createEngine } from '../../../src/quota/engine.js';
import { JournalStore, type JournalOptions } from '../../../src/quota/store/journal/journal-store.js';
import { takeLock } from '../../../src/quota/store/journal/lock.js';

const writer = fileURLToPath(new URL('./killed-writer.js', import.meta.url));

/** Kills a process after `lines` of its answers. Returns the workloads that it reported as admitted. */
async function admitUntilKilled(directory: string, lines: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [writer, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    if (text.split('\n').length > lines) child.kill('SIGKILL');
  });
  await ended;
  return text.split('\n').slice(0, -1);
}

test('a killed process has stored every admission that it answered', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gm-quota-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const admitted = new Set<string>();
  for (let kill = 0; kill < 5; kill++) {
    for (const name of await admitUntilKilled(directory, 30 + kill * 17)) admitted.add(name);
    const engine = await createEngine({ store: await JournalStore.open(directory), clock: () => 0 });
    const status = engine.status('g');
    t.equal(status?.used.get('pods'), BigInt(status?.workloads ?? -1), 'every workload is charged once');
    t.same(engine.refresh().drift, []);
    const there = new Set([...engine.records()].filter(({ kind }) => kind === 'workload').map(({ key }) => key));
    t.same(
      [...admitted].filter((name) => !there.has(name)),
      [],
      `after ${admitted.size} answers`,
    );
    await engine.close();
  }
});

test('a directory belongs to one process at a time', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gm-quota-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const store = await JournalStore.open(directory);
  await t.rejects(JournalStore.open(directory), /in use by process/);
  await store.close();
  await (await JournalStore.open(directory)).close();
});

test('of many processes that open a directory at once one succeeds, whatever a killed process left in the lock file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gm-quota-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'lock');
  // Run a thousand rounds by hand: GPU_MANAGER_LOCK_ROUNDS=1000.
  const rounds = Number(process.env['GPU_MANAGER_LOCK_ROUNDS'] ?? 30);
  let owners = 0;
  for (let round = 0; round < rounds; round++) {
    await writeFile(path, ['', '1 0\n', `${process.pid}\n`, '999999'][round % 4] ?? '');
    const taken = await Promise.allSettled([takeLock(path), takeLock(path), takeLock(path)]);
    const held = taken.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    owners += held.length;
    for (const lock of held) await lock.release();
  }
  t.equal(owners, rounds);
});

test('a store whose snapshot is missing is not opened, a start leaves no file, and a reader changes nothing', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gm-quota-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const opened = async (options: JournalOptions) =>
    createEngine({ store: await JournalStore.open(directory, options), clock: () => 0 });
  const engine = await opened({ compactBytes: 1 });
  for (const name of ['a', 'b', 'c']) await engine.createGroup({ name, hard: { pods: 1 } });
  const names = async (): Promise<readonly string[]> => (await readdir(directory)).sort();
  const live = await opened({ readOnly: true });
  t.same(live.groups(), ['a', 'b', 'c'], 'a store in use can be read');
  await t.rejects(live.createGroup({ name: 'd', hard: {} }), /read-only/);
  await live.close();
  await engine.close();
  await (await opened({})).close();
  const before = await names();
  for (const options of [{}, {}, { readOnly: true }]) await (await opened(options)).close();
  t.same(await names(), before);
  const elsewhere = join(directory, 'misspelt');
  await t.rejects(JournalStore.open(elsewhere, { readOnly: true }), { code: 'ENOENT' });
  t.notOk((await names()).includes('misspelt'));
  for (const name of before.filter((each) => each.startsWith('snapshot-'))) await rm(join(directory, name));
  await t.rejects(opened({}), /snapshot-\d+ is missing/);
});
