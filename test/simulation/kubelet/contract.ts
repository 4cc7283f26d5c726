import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import {
  KUBELET_CHECKPOINT_FILE,
  readKubeletCheckpoint,
} from '../../../src/agent/device-plugin/internal-checkpoint.js';
import { PodResourcesClient } from '../../../src/agent/device-plugin/pod-resources.js';
import { RESOURCE_NAME, type ResourceKind } from '../../../src/gpu/resources.js';
import type { EmulatedPod } from '../../../src/simulation/kubelet/pod.js';
import { container, pod } from '../../agent/pods.js';
import { eventually, until } from '../../harness/eventually.js';
import { RecordingPlugin, type RecordedCall } from './recording-plugin.js';

export type Outcome = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** A kubelet that a test can give pods. */
export interface TestedKubelet {
  readonly directory: string;
  readonly podResourcesSocket: string;
  /** Resolves when the kubelet offers that many devices of a resource. */
  offers(kind: ResourceKind, count: number): Promise<void>;
  /** Submits a pod: resolves when its containers run, or when admission or start has failed. */
  run(pod: EmulatedPod): Promise<Outcome>;
  /** Removes a pod; resolves when the kubelet has released it. */
  remove(pod: EmulatedPod): Promise<void>;
  /** Removes a pod so that it ends after `begun`. A real kubelet learns of it before, and the pod ends slowly. */
  removeAfter(pod: EmulatedPod, begun: Promise<void>): Promise<void>;
  /** The UID of a submitted pod in the kubelet. */
  uidOf(pod: EmulatedPod): Promise<string>;
  /** Restarts the kubelet as another process; the pod stays. */
  restart(): Promise<void>;
}

export interface TestedKubelets {
  readonly name: string;
  /** Null where there is no such kubelet; `why` is printed. */
  readonly start: ((t: Test) => Promise<TestedKubelet>) | null;
  readonly why?: string;
  /** Whether List of pod-resources releases the devices of ended pods; kubelets of 1.20 do that at admissions only. */
  readonly listReleases: boolean;
}

const IDS: Readonly<Record<ResourceKind, readonly string[]>> = {
  core: ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'],
  memory: ['m0', 'm1', 'm2', 'm3'],
};

/** Both plugins, registered and offered. */
class Plugins {
  readonly core: RecordingPlugin;
  readonly memory: RecordingPlugin;

  constructor(directory: string) {
    this.core = new RecordingPlugin('core', directory, IDS.core);
    this.memory = new RecordingPlugin('memory', directory, IDS.memory);
  }

  async start(t: Test, kubelet: TestedKubelet): Promise<void> {
    for (const plugin of [this.core, this.memory]) await plugin.start(t);
    await kubelet.offers('core', IDS.core.length);
    await kubelet.offers('memory', IDS.memory.length);
  }

  take(): { readonly core: RecordedCall[]; readonly memory: RecordedCall[] } {
    return { core: this.core.take(), memory: this.memory.take() };
  }
}

/** The behaviour on which device plugins rely, for the emulated kubelet of the tests and a real one. */
export function kubeletContract({ name, start, why, listReleases }: TestedKubelets): void {
  const skip = start === null ? (why ?? 'not here') : false;
  const scene = async (t: Test): Promise<{ kubelet: TestedKubelet; plugins: Plugins }> => {
    if (start === null) throw new Error('no kubelet');
    const kubelet = await start(t);
    const plugins = new Plugins(kubelet.directory);
    await plugins.start(t, kubelet);
    return { kubelet, plugins };
  };

  test(
    `${name}: the kubelet asks for a preference, allocates the preferred devices, and starts with the same ids`,
    { skip },
    async (t) => {
      const { kubelet, plugins } = await scene(t);
      const wanted = pod([container('main', 2, 1)]);
      t.same(await kubelet.run(wanted), { ok: true });
      t.same(plugins.take(), {
        core: [
          { call: 'preferred', available: IDS.core, mustInclude: [], size: 2 },
          { call: 'allocate', ids: ['c4', 'c5'] },
          { call: 'start', ids: ['c4', 'c5'] },
        ],
        memory: [
          { call: 'preferred', available: IDS.memory, mustInclude: [], size: 1 },
          { call: 'allocate', ids: ['m3'] },
          { call: 'start', ids: ['m3'] },
        ],
      });
      await namesHolder(t, kubelet, wanted, { core: ['c4', 'c5'], memory: ['m3'] });

      const next = pod([container('main', 1, 0)]);
      t.same(await kubelet.run(next), { ok: true });
      t.match(plugins.take(), {
        core: [{ call: 'preferred', available: ['c0', 'c1', 'c2', 'c3'] }, {}, {}],
        memory: [],
      });
      await kubelet.remove(wanted);
      t.same(await kubelet.run(pod([container('main', 2, 0)])), { ok: true });
      t.match(
        plugins.take().core[0],
        { call: 'preferred', available: ['c0', 'c1', 'c2', 'c4', 'c5'] },
        'the devices of a pod are free when the next one is admitted',
      );
    },
  );

  test(`${name}: containers take over the devices of init containers`, { skip }, async (t) => {
    const { kubelet, plugins } = await scene(t);
    t.same(await kubelet.run(pod([container('main', 3, 0)], [container('before', 2, 0)])), { ok: true });
    t.same(plugins.take().core, [
      { call: 'preferred', available: IDS.core, mustInclude: [], size: 2 },
      { call: 'allocate', ids: ['c4', 'c5'] },
      { call: 'preferred', available: IDS.core, mustInclude: ['c4', 'c5'], size: 3 },
      { call: 'allocate', ids: ['c3', 'c4', 'c5'] },
      { call: 'start', ids: ['c4', 'c5'] },
      { call: 'start', ids: ['c3', 'c4', 'c5'] },
    ]);
    t.same(await kubelet.run(pod([container('main', 2, 0)], [container('before', 2, 0)])), { ok: true });
    t.same(
      plugins.take().core,
      [
        { call: 'preferred', available: ['c0', 'c1', 'c2'], mustInclude: [], size: 2 },
        { call: 'allocate', ids: ['c1', 'c2'] },
        { call: 'allocate', ids: ['c1', 'c2'] },
        { call: 'start', ids: ['c1', 'c2'] },
        { call: 'start', ids: ['c1', 'c2'] },
      ],
      'the kubelet asks for no preference where the devices of the init container suffice',
    );
  });

  test(
    `${name}: a refused allocation fails the pod with the reason of the plugin, and keeps no device`,
    { skip },
    async (t) => {
      const { kubelet, plugins } = await scene(t);
      plugins.core.refuseAllocate = 'the plugin says no';
      const refused = await kubelet.run(pod([container('main', 2, 0)]));
      t.match(refused, { ok: false, message: /^UnexpectedAdmissionError.*gpu-manager: the plugin says no/s });
      plugins.core.refuseAllocate = null;
      plugins.take();
      t.same(await kubelet.run(pod([container('main', 1, 0)])), { ok: true });
      t.match(plugins.take().core[0], { available: IDS.core });
    },
  );

  test(
    `${name}: a List of pod-resources after a pod has ended lets the kubelet offer the devices of an unfinished Allocate`,
    { skip: skip !== false ? skip : listReleases ? false : 'List releases nothing in this version' },
    async (t) => {
      const { kubelet, plugins } = await scene(t);
      const first = pod([container('main', 1, 0)]);
      t.same(await kubelet.run(first), { ok: true });
      let answer = (): void => undefined;
      plugins.core.beforeAllocated = new Promise((resolve) => (answer = resolve));
      plugins.take();
      let begin = (): void => undefined;
      const removed = kubelet.removeAfter(first, new Promise((resolve) => (begin = resolve)));
      const running = kubelet.run(pod([container('main', 2, 0)]));
      await eventually(async () => plugins.core.calls.some(({ call }) => call === 'allocate'), 'an Allocate');
      begin();
      const [, allocated] = plugins.take().core;
      await listed(kubelet, first);
      answer();
      t.same(await running, { ok: true });
      await removed;
      t.same(await kubelet.run(pod([container('main', 1, 0)])), { ok: true });
      const [offer] = plugins.take().core.filter(({ call }) => call === 'preferred');
      const available = offer?.call === 'preferred' ? offer.available : [];
      const ids = allocated?.call === 'allocate' ? allocated.ids : [];
      t.equal(ids.length, 2);
      t.same(
        ids.filter((id) => !available.includes(id)),
        [],
        'so a plugin must know which devices it has allocated',
      );
    },
  );

  test(`${name}: a refused start prevents the container, and its devices stay allocated`, { skip }, async (t) => {
    const { kubelet, plugins } = await scene(t);
    plugins.core.refuseStart = 'not now';
    t.match(await kubelet.run(pod([container('main', 2, 0)])), { ok: false, message: /not now/ });
    plugins.core.refuseStart = null;
    plugins.take();
    t.same(await kubelet.run(pod([container('main', 1, 0)])), { ok: true });
    const preferred = plugins.take().core.filter(({ call }) => call === 'preferred');
    t.match(preferred, [{ available: ['c0', 'c1', 'c2', 'c3'] }]);
  });

  test(`${name}: devices that are unhealthy, or whose plugin is gone, are not offered`, { skip }, async (t) => {
    const { kubelet, plugins } = await scene(t);
    plugins.core.setHealth('c5', false);
    await kubelet.offers('core', 5);
    t.same(await kubelet.run(pod([container('main', 1, 0)])), { ok: true });
    t.match(plugins.take().core[0], { available: ['c0', 'c1', 'c2', 'c3', 'c4'] });
    plugins.core.setHealth('c5', true);
    await kubelet.offers('core', 6);
    await plugins.core.stop();
    await kubelet.offers('core', 0);
    await kubelet.offers('memory', IDS.memory.length);
  });

  test(`${name}: a restart removes the sockets of plugins and keeps the devices of containers`, { skip }, async (t) => {
    const { kubelet, plugins } = await scene(t);
    const running = pod([container('main', 2, 1)]);
    t.same(await kubelet.run(running), { ok: true });
    plugins.take();
    await kubelet.restart();
    t.same(
      readdirSync(kubelet.directory).filter((file) => file.endsWith('.sock')),
      ['kubelet.sock'],
    );
    for (const plugin of [plugins.core, plugins.memory]) await plugin.stop();
    await plugins.start(t, kubelet);
    t.same(plugins.take(), { core: [], memory: [] }, 'no allocation and no start is repeated');
    t.same(await kubelet.run(pod([container('main', 1, 1)])), { ok: true });
    t.match(plugins.take(), {
      core: [{ call: 'preferred', available: ['c0', 'c1', 'c2', 'c3'] }, {}, {}],
      memory: [{ call: 'preferred', available: ['m0', 'm1', 'm2'] }, {}, {}],
    });
    await namesHolder(t, kubelet, running, { core: ['c4', 'c5'], memory: ['m3'] });
  });
}

/** Lists pod-resources until no device of an ended pod is listed. */
async function listed(kubelet: TestedKubelet, { name }: EmulatedPod): Promise<void> {
  const client = new PodResourcesClient(kubelet.podResourcesSocket);
  try {
    await until(
      'the end of the pod',
      async () => (await client.list()).every((entry) => entry.pod !== name || entry.devices.size === 0),
      120_000,
    );
  } finally {
    client.close();
  }
}

/** The pod-resources service and the checkpoint name the holder of the ids. */
async function namesHolder(
  t: Test,
  kubelet: TestedKubelet,
  { name, namespace, ...wanted }: EmulatedPod,
  ids: Readonly<Record<ResourceKind, readonly string[]>>,
): Promise<void> {
  const client = new PodResourcesClient(kubelet.podResourcesSocket);
  try {
    const listed = (await client.list()).find((entry) => entry.namespace === namespace && entry.pod === name);
    t.match(listed, { container: 'main' });
    for (const kind of ['core', 'memory'] as const)
      t.same([...(listed?.devices.get(RESOURCE_NAME[kind]) ?? [])].sort(), ids[kind], `pod-resources: ${kind}`);
  } finally {
    client.close();
  }
  const podUid = await kubelet.uidOf({ name, namespace, ...wanted });
  const held = await eventually(async () => {
    const checkpoint = await readKubeletCheckpoint(join(kubelet.directory, KUBELET_CHECKPOINT_FILE));
    const entries = checkpoint.ok ? checkpoint.entries.filter((entry) => entry.podUid === podUid) : [];
    return entries.length === 2 && entries;
  }, 'the checkpoint of the kubelet');
  for (const kind of ['core', 'memory'] as const) {
    const entry = held.find(({ resource }) => resource === RESOURCE_NAME[kind]);
    t.match(entry, { container: 'main' });
    t.same([...(entry?.deviceIds ?? [])].sort(), ids[kind], `checkpoint: ${kind}`);
  }
}
