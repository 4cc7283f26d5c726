import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { test, type Test } from 'tap';
import { KubeletEmulator } from '../../../src/simulation/kubelet/kubelet.js';
import { silentLog } from '../../../src/host/log.js';
import { KubeletHolders, type PodNames } from '../../../src/agent/device-plugin/holders.js';
import { eventually } from '../../harness/eventually.js';
import { container, pod } from '../pods.js';
import { scratchDirectory } from '../../scratch.js';

/** A kubelet that knows pods without any allocation; the test needs its answers only. */
async function kubeletOf(t: Test, pods: PodNames): Promise<{ kubelet: KubeletEmulator; holders: KubeletHolders }> {
  const directory = await scratchDirectory(t);
  const [plugins, podResourcesSocket] = [join(directory, 'plugins'), join(directory, 'pod-resources.sock')];
  await mkdir(plugins);
  const kubelet = new KubeletEmulator({ directory: plugins, podResourcesSocket });
  await kubelet.start();
  const holders = new KubeletHolders({ podResourcesSocket, devicePluginDirectory: plugins, pods, log: silentLog() });
  t.teardown(async () => {
    holders.close();
    await kubelet.stop();
  });
  return { kubelet, holders };
}

const response = Buffer.alloc(0);

test('the record of the kubelet decides which pod of that name holds the ids, whatever the API server lists', async (t) => {
  const { kubelet, holders } = await kubeletOf(t, { uidOf: () => 'the one of before', nameOf: () => null });
  const web = pod([container('main', 30, 4)]);
  await kubelet.inherit(web, [
    { podUid: web.uid, container: 'main', kind: 'core', ids: ['a-c0', 'a-c1'], response },
    { podUid: web.uid, container: 'main', kind: 'memory', ids: ['a-m0'], response },
  ]);
  t.match(await eventually(() => holders.all(), 'an answer of the kubelet'), [
    {
      container: { podUid: web.uid, pod: web.name, container: 'main' },
      coreIds: ['a-c0', 'a-c1'],
      memoryIds: ['a-m0'],
    },
  ]);
  const holder = await eventually(() => holders.holderOf('core', ['a-c1', 'a-c0']), 'the holder');
  t.match(holder, { container: { podUid: web.uid } });
});

test('cores that an init container and a later container hold in turn come with the memory of both', async (t) => {
  const { kubelet, holders } = await kubeletOf(t, { uidOf: () => null, nameOf: () => null });
  const batch = pod([container('main', 2, 1)], [container('init', 2, 2)]);
  const held = (name: string, memoryIds: readonly string[]) => [
    { podUid: batch.uid, container: name, kind: 'core' as const, ids: ['a-c0', 'a-c1'], response },
    { podUid: batch.uid, container: name, kind: 'memory' as const, ids: memoryIds, response },
  ];
  await kubelet.inherit(batch, [...held('init', ['a-m0', 'a-m1']), ...held('main', ['a-m0'])]);
  const ofCores = await eventually(() => holders.holderOf('core', ['a-c0', 'a-c1']), 'the holder of cores');
  t.same(ofCores.memoryIds.toSorted(), ['a-m0', 'a-m1']);
  const ofMemory = await eventually(() => holders.holderOf('memory', ['a-m0']), 'the holder of memory');
  t.same(ofMemory.container.container, 'main');
});

test("a device plugin of NVIDIA's on the same node is reported once, until it has gone", async (t) => {
  const directory = await scratchDirectory(t);
  const lines: string[] = [];
  const holders = new KubeletHolders({
    podResourcesSocket: join(directory, 'none.sock'),
    devicePluginDirectory: directory,
    pods: { uidOf: () => null, nameOf: () => null },
    log: pino({}, { write: (line: string) => lines.push(line) }),
  });
  t.teardown(() => holders.close());
  const reports = async (ids: readonly string[]): Promise<number> => {
    const checkpoint = { Data: { PodDeviceEntries: null, RegisteredDevices: { 'nvidia.com/gpu': ids } } };
    await writeFile(join(directory, 'kubelet_internal_checkpoint'), JSON.stringify(checkpoint));
    await holders.known();
    return lines.filter((line) => line.includes("NVIDIA's device plugin offers GPUs on this node too")).length;
  };
  t.equal(await reports(['GPU-a']), 1);
  t.equal(await reports(['GPU-a', 'GPU-b']), 1);
  t.equal(await reports([]), 1);
  t.equal(await reports(['GPU-a']), 2);
});
