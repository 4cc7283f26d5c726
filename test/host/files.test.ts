import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { removeHalfWritten, writeFileAtomically, type AtomicWriteFs } from '../../src/host/atomic-file.js';
import { UnixListener, socketIdentity, socketPathProblem } from '../../src/host/unix-socket.js';
import { scratchDirectory } from '../scratch.js';

test('an atomic write replaces the whole file, with the requested mode', async (t) => {
  const directory = await scratchDirectory(t);
  const path = join(directory, 'state');
  await writeFileAtomically(path, 'one');
  await writeFileAtomically(path, 'two', { mode: 0o600 });
  t.equal(await fs.readFile(path, 'utf8'), 'two');
  t.equal((await fs.stat(path)).mode & 0o777, 0o600);
  t.same(await fs.readdir(directory), ['state']);
});

for (const step of ['open', 'rename'] as const) {
  test(`a failing ${step} leaves the old file and no temporary file`, async (t) => {
    const directory = await scratchDirectory(t);
    const path = join(directory, 'state');
    await writeFileAtomically(path, 'old');
    const failing: AtomicWriteFs = {
      open: fs.open,
      rename: fs.rename,
      rm: fs.rm,
      [step]: () => Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })),
    };
    await t.rejects(writeFileAtomically(path, 'new', { fs: failing }), { code: 'ENOSPC' });
    t.equal(await fs.readFile(path, 'utf8'), 'old');
    t.same(await fs.readdir(directory), ['state']);
  });
}

test('the clean-up removes the temporary files of a killed process, and no other files', async (t) => {
  const directory = await scratchDirectory(t);
  for (const name of ['.state.4711.tmp', '.state', 'state.4711.tmp', '.vimrc.tmp'])
    await fs.writeFile(join(directory, name), '');
  await writeFileAtomically(join(directory, 'state'), 'whole');
  await removeHalfWritten(directory);
  t.same((await fs.readdir(directory)).sort(), ['.state', '.vimrc.tmp', 'state', 'state.4711.tmp']);
});

test('the identity of a socket changes when the socket is created anew, even with the same inode', async (t) => {
  const path = join(await scratchDirectory(t), 's.sock');
  t.equal(await socketIdentity(path), null);
  const seen = new Set<string | null>();
  for (let life = 0; life < 5; life += 1) {
    const listener = new UnixListener(path, (socket) => socket.destroy());
    await listener.start();
    seen.add(await socketIdentity(path));
    await listener.stop();
  }
  t.equal(seen.size, 5);
});

test("a socket path beyond the kernel's limit is refused by name before any file is created", async (t) => {
  t.equal(socketPathProblem(`/${'x'.repeat(106)}`), null);
  t.match(socketPathProblem(`/${'x'.repeat(107)}`), /108 bytes long, 107 is the limit/);
  await t.rejects(new UnixListener(`/tmp/${'y'.repeat(120)}`, () => undefined).start(), {
    message: /107 is the limit/,
  });
});
