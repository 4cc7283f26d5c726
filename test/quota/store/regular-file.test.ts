import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { createEngine, JournalStore, openAuditFile, verifyAuditFile } from '../../../src/quota/index.js';

const REFUSED = /^[^ ]+ is a fifo, a device, a socket or a directory; expected a regular file: move it away$/;

const fifo = (path: string): void => void execFileSync('mkfifo', [path]);

/** A directory with the files of a journal. */
async function journal(directory: string): Promise<string> {
  const engine = await createEngine({ store: await JournalStore.open(directory, { durable: false }), clock: () => 0 });
  await engine.execute({ type: 'createGroup', name: 'g', hard: { 'limits.cpu': 5 } }, 0);
  await engine.close();
  return directory;
}

const opened = (directory: string) =>
  JournalStore.open(directory, { durable: false }).then((store) => createEngine({ store, clock: () => 0 }));

test('a fifo or a directory in the place of a file of the journal is refused with a sentence, at once', async (t) => {
  for (const name of ['lock', 'journal-0', 'newest', 'snapshot-1'])
    for (const put of [fifo, mkdirSync]) {
      const directory = await journal(join(t.testdir(), `${name}-${put.name}`));
      const path = join(directory, name);
      rmSync(path, { force: true });
      put(path);
      await t.rejects(opened(directory), { message: REFUSED }, `${name} ${put.name}`);
      // Without it the directory can be opened again: the attempt has released the lock.
      rmSync(path, { recursive: true });
      if (name === 'lock' || name === 'snapshot-1') await (await opened(directory)).close();
    }
});

test('an audit file is a regular file', async (t) => {
  const directory = t.testdir();
  fifo(join(directory, 'fifo'));
  for (const path of [join(directory, 'fifo'), '/dev/zero', directory]) {
    await t.rejects(openAuditFile(path), { message: REFUSED }, path);
    await t.rejects(verifyAuditFile(path), { message: REFUSED }, path);
  }
});
