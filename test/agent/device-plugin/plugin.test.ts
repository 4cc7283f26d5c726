import { rename } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { callsOf } from '../../../src/agent/device-plugin/plugin-calls.js';
import { DevicePlugin, KUBELET_SOCKET } from '../../../src/agent/device-plugin/plugin.js';
import { NO_EDITS } from '../../../src/gpu/container-edits.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';

test('a kubelet whose socket does not answer yet is asked again after 20 ms, later less often', async (t) => {
  const directory = await scratchDirectory(t);
  // The socket file of a server that is gone: nothing listens there.
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(directory, 'gone'), resolve));
  await rename(join(directory, 'gone'), join(directory, KUBELET_SOCKET));
  await new Promise((resolve) => server.close(resolve));
  const delays: number[] = [];
  const calls = callsOf('core', {
    devices: () => [],
    onDevicesChanged: () => () => undefined,
    preferred: async () => ({ ok: true, ids: [] }),
    allocate: async () => ({ ok: true, edits: NO_EDITS }),
    preStart: async () => ({ ok: true }),
  });
  const plugin = new DevicePlugin({
    directory,
    calls: { core: calls, memory: calls },
    clock: {
      ...systemClock,
      every: () => () => undefined,
      after(ms, action) {
        delays.push(ms);
        return systemClock.after(delays.length < 9 ? 0 : 60_000, action);
      },
    },
    log: silentLog(),
  });
  t.teardown(() => plugin.stop());
  await plugin.start();
  await eventually(() => delays.length >= 9, 'nine retries');
  t.same(delays.slice(0, 9), [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
});
