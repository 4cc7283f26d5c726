import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { createEngine } from '../../../src/quota/engine.js';
import { JournalStore } from '../../../src/quota/store/journal/journal-store.js';

const writer = fileURLToPath(new URL('./killed-writer.js', import.meta.url));

/** Lets a process admit until `lines` answers came, and kills it there. Returns the workloads that it said were admitted. */
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

test('a process that is killed while it admits has admitted what it said', async (t) => {
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
