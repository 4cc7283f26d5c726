import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { LOCK_FILE, lockNode } from '../../src/agent/standby.js';
import { systemClock } from '../../src/host/clock.js';
import { FileLock } from '../../src/host/file-lock.js';
import { silentLog } from '../../src/host/log.js';
import { plain } from '../../src/http/answer.js';
import { Listener } from '../../src/http/listener.js';
import { eventually } from '../harness/eventually.js';
import { scratchDirectory } from '../scratch.js';

test('a standby agent leaves the port to the running agent, and takes over when that has ended', async (t) => {
  const checkpointPath = join(await scratchDirectory(t), 'checkpoint');
  mkdirSync(checkpointPath);
  const lock = await FileLock.tryAcquire(join(checkpointPath, LOCK_FILE));
  const running = new Listener({
    address: '127.0.0.1',
    port: 0,
    tls: null,
    notReady: () => [],
    route: () => ({ method: 'GET', isOpen: true, answer: () => plain(200, 'the running agent') }),
    log: silentLog(),
  });
  await running.start();
  const config = {
    checkpointPath,
    queryAddress: '127.0.0.1',
    queryPort: running.port,
    probes: null,
    tls: null,
    tlsSelfSigned: false,
    nodeName: 'node-1',
  };
  let next: FileLock | null = null;
  const standing = lockNode(config, systemClock, silentLog(), new Promise(() => undefined)).then((taken) => {
    next = taken;
  });
  t.match(await (await fetch(`http://127.0.0.1:${running.port}/version`)).text(), 'the running agent');
  await running.stop();
  await lock?.release();
  await standing;
  await eventually(() => next !== null);
  t.pass('the other agent has the lock');
  await (next as FileLock | null)?.release();
});
