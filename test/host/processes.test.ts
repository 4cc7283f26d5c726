import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { openFileLimit } from '../../src/host/open-files.js';
import { peerCredentials, type PeerCredentials } from '../../src/host/peer-credentials.js';
import { processStat } from '../../src/host/process-stat.js';
import { UnixListener } from '../../src/host/unix-socket.js';
import { eventually } from '../harness/eventually.js';
import { scratchDirectory } from '../scratch.js';

test('the peer of a connection is the process that connected', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  const peers: (PeerCredentials | null)[] = [];
  const listener = new UnixListener(path, (socket) => {
    socket.on('error', () => undefined);
    peers.push(peerCredentials(socket));
    socket.destroy();
  });
  await listener.start();
  t.teardown(() => listener.stop());
  const child = spawn(
    process.execPath,
    ['-e', "require('node:net').connect(process.argv[1], () => process.exit(0))", path],
    { stdio: 'ignore' },
  );
  await once(child, 'exit');
  await eventually(() => peers.length > 0, 'the peer');
  t.same(peers, [{ pid: child.pid, uid: process.getuid?.() }]);
});

test('a connection that is closed has no peer', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const socket = connect(path);
  await once(socket, 'connect');
  t.not(peerCredentials(socket), null);
  socket.destroy();
  t.equal(peerCredentials(socket), null);
  server.close();
});

test('the identity of a process is read from its stat file, whatever the process calls itself', async (t) => {
  const own = processStat(process.pid);
  t.ok((own?.startTicks ?? 0) > 0);
  const proc = await scratchDirectory(t);
  await mkdir(join(proc, '7'));
  const stat = async (state: string, threads: number, flags = 0) => {
    const fields = Array.from({ length: 49 }, (_, at) =>
      at === 0 ? state : at === 6 ? flags : at === 17 ? threads : at === 19 ? 123_456 : at,
    ).join(' ');
    await writeFile(join(proc, '7', 'stat'), `7 (a) b) ${fields}\n`);
    return processStat(7, proc);
  };
  t.same(await stat('S', 1), { startTicks: 123_456, name: 'a) b', ended: false, exiting: false });
  t.match(await stat('S', 1, 0x0040_0004), { exiting: true }, 'PF_EXITING beside another flag');
  t.match(await stat('Z', 1), { ended: true });
  t.match(await stat('Z', 2), { ended: false }, 'only the first thread of the process has ended');
  await writeFile(join(proc, '7', 'stat'), 'garbage');
  t.equal(processStat(7, proc), null);
  t.equal(processStat(8, proc), null);
});

test('the limit of open files is read from the kernel', async (t) => {
  t.ok((openFileLimit() ?? 0) >= 64);
  const path = join(await scratchDirectory(t), 'limits');
  t.equal(openFileLimit(path), null);
  for (const [text, limit] of [
    ['Max open files            1024                 524288               files', 1024],
    ['Max open files            unlimited            unlimited            files', Infinity],
    ['', null],
  ] as const) {
    await writeFile(path, `Limit                     Soft Limit           Hard Limit           Units\n${text}\n`);
    t.equal(openFileLimit(path), limit);
  }
});

test('a paused listener keeps its connections, accepts no new ones, and then accepts again', async (t) => {
  const path = join(await scratchDirectory(t), 'a.sock');
  let taken = 0;
  const listener = new UnixListener(path, (socket) => {
    taken += 1;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => socket.write(chunk));
  });
  await listener.start();
  t.teardown(() => listener.stop());
  const living = connect(path);
  living.write('before');
  await once(living, 'data');
  listener.pause();
  t.equal(listener.listening, false);
  const refused = connect(path);
  await t.rejects(once(refused, 'connect'), { code: 'ENOENT' });
  living.write('still');
  t.equal(String((await once(living, 'data'))[0]), 'still');
  await listener.start();
  await listener.start();
  const again = connect(path);
  again.write('after');
  t.equal(String((await once(again, 'data'))[0]), 'after');
  t.equal(taken, 2);
  living.destroy();
  again.destroy();
});
