import { test } from 'tap';
import { PluginServer } from '../../../src/agent/device-plugin/plugin-server.js';
import type { PluginCalls } from '../../../src/agent/device-plugin/plugin-calls.js';
import { silentLog } from '../../../src/host/log.js';
import { scratchDirectory } from '../../scratch.js';

const CALLS: PluginCalls = {
  list: () => ({ devices: [] }),
  onListChanged: () => () => undefined,
  preferredAllocation: () => Promise.reject(new Error('not asked for here')),
  allocate: () => Promise.reject(new Error('not asked for here')),
  preStartContainer: () => Promise.reject(new Error('not asked for here')),
};

/** Longer than any turn of the event loop on a loaded machine, and short enough for a call that takes ten turns. */
const TURN_MS = 1_200;

test('calls that take seconds on a loaded machine delay the start of a plugin and do not end it', async (t) => {
  const server = new PluginServer(
    { resource: 'tencent.com/vcuda-core', socket: 'vcore.sock', calls: CALLS },
    await scratchDirectory(t),
    silentLog(),
  );
  t.teardown(() => server.stop());
  let isOver = false;
  const started = server.start().finally(() => (isOver = true));
  started.catch(() => undefined);
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TURN_MS);
  }
  await started;
  t.ok(await server.isReachable());
});
