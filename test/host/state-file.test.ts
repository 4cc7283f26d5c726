import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { checkpointFile } from '../../src/agent/allocator/checkpoint-file.js';
import { readKubeletCheckpoint } from '../../src/agent/device-plugin/internal-checkpoint.js';
import { CHECKPOINT_FILE } from '../../src/gpu/ledger/checkpoint.js';
import { FileLock } from '../../src/host/file-lock.js';
import { readStateFile } from '../../src/host/state-file.js';

test('a fifo, a device or a directory in the place of a state file is refused with a sentence, at once', async (t) => {
  const directory = t.testdir();
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('file'), 'text');
  symlinkSync(at('file'), at('link'));
  t.same([await readStateFile(at('file')), await readStateFile(at('link'))], ['text', 'text']);
  await t.rejects(readStateFile(at('missing')), { code: 'ENOENT' });
  execFileSync('mkfifo', [at('fifo'), at(CHECKPOINT_FILE)]);
  mkdirSync(at('directory'));
  for (const [path, kind] of [
    [at('fifo'), 'a fifo'],
    [at('directory'), 'a directory'],
    ['/dev/zero', 'a device'],
  ] as const)
    await t.rejects(
      readStateFile(path),
      { message: new RegExp(`^${path} is ${kind}.*expected a regular file`, 'u') },
      path,
    );
  await t.rejects(FileLock.tryAcquire(at('fifo')), { message: /expected a regular file/ });
  await t.rejects(checkpointFile(directory).load(), { message: /is a fifo; expected a regular file/ });
  t.match(await readKubeletCheckpoint(at('fifo')), { ok: false, reason: /is a fifo/ });
});
