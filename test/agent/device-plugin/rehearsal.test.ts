import { join } from 'node:path';
import { test } from 'tap';
import type { DeviceSource } from '../../../src/agent/device-plugin/devices.js';
import { openDevicePlugin } from '../../../src/agent/device-plugin/open-kubelet.js';
import { REHEARSAL_DELAY_MS, REHEARSAL_ROUNDS } from '../../../src/agent/device-plugin/rehearsal.js';
import { NO_EDITS } from '../../../src/gpu/container-edits.js';
import { refuse } from '../../../src/gpu/request.js';
import { systemClock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { KubeletEmulator } from '../../../src/simulation/kubelet/kubelet.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';

const IDS = ['one', 'two'];

for (const preview of [
  { name: 'answered', answer: { ok: true, ids: ['two'] } },
  { name: 'refused', answer: refuse('nothing-fits', 'the node is full') },
] as const)
  test(`a registered plugin rehearses a first request, which is ${preview.name}, without effect`, async (t) => {
    const directory = await scratchDirectory(t);
    const kubelet = new KubeletEmulator({ directory, podResourcesSocket: join(directory, 'pod-resources.sock') });
    await kubelet.start();
    t.teardown(() => kubelet.stop());
    const asked: unknown[] = [];
    const devices: DeviceSource = {
      devices: () => IDS.map((id) => ({ id, healthy: true, numaNode: null })),
      onDevicesChanged: () => () => undefined,
      preferred: async () => t.fail('the rehearsal has an effect') as never,
      allocate: async () => ({ ok: true, edits: NO_EDITS }),
      preStart: async () => ({ ok: true }),
    };
    const later: [number, () => void][] = [];
    const plugin = await openDevicePlugin({
      config: { podResourcesSocket: '', devicePluginPath: directory, pluginProxyPath: null },
      devices,
      preview: async (...question) => {
        asked.push(question);
        return preview.answer;
      },
      wholeInstances: () => new Map(),
      clock: {
        ...systemClock,
        after(ms, action) {
          later.push([ms, action]);
          return () => undefined;
        },
      },
      log: silentLog(),
    });
    t.teardown(() => plugin.stop());
    await plugin.start();
    t.same(
      later.map(([ms]) => ms),
      [REHEARSAL_DELAY_MS],
    );
    t.same(asked, [], 'the kubelet learns of the plugin first');
    later[0]?.[1]();
    const rounds = preview.answer.ok ? REHEARSAL_ROUNDS : 1;
    await eventually(() => asked.length === rounds, 'the rehearsal');
    t.same(
      asked,
      Array.from({ length: rounds }, () => ['core', IDS, [], 1]),
    );
  });
