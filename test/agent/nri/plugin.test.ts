import { status } from '@grpc/grpc-js';
import { test, type Test } from 'tap';
import { WANTED_EVENTS } from '../../../src/agent/nri/plugin-service.js';
import type { Container } from '../../../src/rpc/gen/nri/pkg/api/v1alpha1/Container.js';
import type { PodSandbox } from '../../../src/rpc/gen/nri/pkg/api/v1alpha1/PodSandbox.js';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { NODE_NAME } from '../cluster.js';
import { startedDraNode } from '../claims/dra-node.js';
import { startedNode } from '../node.js';
import { EmulatedRuntime } from './emulated-runtime.js';
import { findings, OURS, preparedPod, THEIRS, type Prepared } from './runtime-setting.js';

async function nodeAndRuntime(t: Test, ...options: Parameters<typeof startedNode>[1][]) {
  const runtime = await EmulatedRuntime.started(t);
  const [{ config, ...rest } = {}] = options;
  const node = await startedNode(t, { ...rest, config: { nriSocket: runtime.path, ...config } });
  return { runtime, node };
}

/** A prepared pod as a runtime describes it. */
function described(
  { pod, spec }: Prepared,
  id: string,
  changes: Partial<Container> = {},
): { readonly pod: PodSandbox; readonly container: Container } {
  const sandbox = `sandbox-${pod.uid}`;
  return {
    pod: { id: sandbox, uid: pod.uid, name: pod.name, namespace: pod.namespace },
    container: {
      id,
      pod_sandbox_id: sandbox,
      name: spec.name,
      state: 'CONTAINER_RUNNING',
      env: Object.entries(spec.environment ?? {}).map(([name, value]) => `${name}=${value}`),
      mounts: (spec.mounts ?? []).map(({ hostPath, containerPath, writable }) => ({
        destination: containerPath,
        type: 'bind',
        source: hostPath,
        options: ['rbind', writable ? 'rw' : 'ro'],
      })),
      ...changes,
    },
  };
}

test('the agent registers with a late index and subscribes only to the events that it needs', async (t) => {
  const { runtime } = await nodeAndRuntime(t);
  const plugin = await runtime.plugin();
  t.match(await plugin.registered, { plugin_name: 'gpu-manager', plugin_idx: '90' });
  t.equal(await plugin.configure(), WANTED_EVENTS);
  t.equal(WANTED_EVENTS, 0b110_0000_1100);
});

test('without a difference there is no adjustment, and otherwise only the difference is adjusted', async (t) => {
  const { runtime, node } = await nodeAndRuntime(t);
  const plugin = await runtime.readyPlugin();
  const prepared = await preparedPod(node.kubelet);
  const { pod, container } = described(prepared, 'c1');
  t.equal(await plugin.create(pod, container), null);
  const env = [...(container.env ?? []).filter((entry) => !entry.startsWith('LD_')), `LD_LIBRARY_PATH=${THEIRS}`];
  t.match(await plugin.create(pod, { ...container, env }), {
    env: [
      { key: '-LD_LIBRARY_PATH', value: '' },
      { key: 'LD_LIBRARY_PATH', value: `${OURS}:${THEIRS}` },
    ],
    mounts: [],
    linux: null,
  });
  t.equal(await plugin.create({ ...pod, uid: 'another' }, { ...container, env }), null, 'a container of another pod');
  t.equal(await plugin.create(pod, { ...container, name: 'sidecar', env }), null, 'another container of the pod');
});

test('a list of containers in several messages is one list', async (t) => {
  const { runtime, node } = await nodeAndRuntime(t);
  const [first, second] = [await preparedPod(node.kubelet), await preparedPod(node.kubelet)];
  const [a, b] = [described(first, 'a'), described(second, 'b', { env: [`LD_LIBRARY_PATH=${THEIRS}`] })];
  // All pods precede the containers, as a runtime sends them.
  const plugin = await runtime.readyPlugin(
    { pods: [a.pod, b.pod], containers: [a.container] },
    { pods: [], containers: [b.container] },
  );
  t.match(node.agent.nri?.containers.all(), [
    { id: 'a', podUid: first.pod.uid, problems: [] },
    { id: 'b', podUid: second.pod.uid, problems: [/^LD_LIBRARY_PATH is/, /^NVIDIA_VISIBLE_DEVICES is not set/] },
  ]);
  await eventually(() => findings(node, second.pod.uid).length === 1, 'the finding');
  t.same(findings(node, first.pod.uid), []);

  plugin.close();
  await runtime.readyPlugin({ pods: [a.pod], containers: [a.container] });
  t.match(
    node.agent.nri?.containers.all().map(({ id }) => id),
    ['a'],
    'containers that the runtime no longer lists are forgotten',
  );
});

test('removed containers and sandboxes are forgotten, whichever event reports them', async (t) => {
  const { runtime, node } = await nodeAndRuntime(t);
  const plugin = await runtime.readyPlugin();
  const known = (): string[] => (node.agent.nri?.containers.all() ?? []).map(({ id }) => id);
  const made = [];
  for (const id of ['a', 'b', 'c', 'd']) {
    const one = described(await preparedPod(node.kubelet), id);
    await plugin.create(one.pod, one.container);
    made.push(one);
  }
  const [a, b, c, d] = made as [(typeof made)[0], (typeof made)[0], (typeof made)[0], (typeof made)[0]];
  t.same(known(), ['a', 'b', 'c', 'd']);
  await plugin.tell('StopContainer', { pod: { id: a.pod.id ?? '' }, container: { id: 'a' } });
  t.same(known(), ['a', 'b', 'c', 'd'], 'a stopped container still exists');
  await plugin.tell('RemoveContainer', { container: { id: 'a' } });
  await plugin.tellStateChange('REMOVE_CONTAINER', b);
  await plugin.tell('RemovePodSandbox', { pod: c.pod });
  t.same(known(), ['d']);
  await plugin.tellStateChange('REMOVE_POD_SANDBOX', { pod: d.pod });
  t.same(known(), []);
  await plugin.tell('StopContainer', { container: { id: 'never-seen' } });
});

test('a container that is created again replaces the one before it', async (t) => {
  const { runtime, node } = await nodeAndRuntime(t);
  const plugin = await runtime.readyPlugin();
  const prepared = await preparedPod(node.kubelet);
  for (const id of ['first', 'second']) {
    const { pod, container } = described(prepared, id);
    await plugin.create(pod, container);
  }
  t.same(
    node.agent.nri?.containers.all().map(({ id }) => id),
    ['second'],
  );
});

test('the agent disconnects from a runtime that violates the protocol, and connects again', async (t) => {
  const { runtime, node } = await nodeAndRuntime(t);
  for (const [connection, bytes] of [
    [1, Buffer.alloc(10, 0xff)],
    [2, Buffer.from('000000000000000101000000', 'hex')],
  ] as const) {
    const plugin = await runtime.readyPlugin();
    const losses = node.agent.nri?.plugin.losses ?? 0;
    plugin.write(connection, bytes);
    // A message that is announced and never arrives is no error: the runtime ends the connection.
    if (connection === 1) plugin.close();
    await eventually(() => node.agent.nri?.plugin.losses === losses + 1, 'the connection to end');
  }
  await runtime.readyPlugin();
  t.match(node.agent.nri?.plugin.runtime, { name: 'emulated' });
});

test('with --cpu-affinity=strict a container without a CPU near its GPU is refused by name', async (t) => {
  const systemDirectory = await scratchDirectory(t);
  for (const [path, text] of [
    ['cpu/online', '0-1'],
    ['node/node0/cpulist', '0-1'],
    ['node/node1/cpulist', ''],
  ] as const) {
    await mkdir(join(systemDirectory, path, '..'), { recursive: true });
    await writeFile(join(systemDirectory, path), `${text}\n`);
  }
  const { runtime, node } = await nodeAndRuntime(t, {
    gpus: JSON.stringify({ gpus: [{ numaNode: 1 }] }),
    config: { cpuAffinity: 'strict' },
    seams: { systemDirectory },
  });
  const plugin = await runtime.readyPlugin();
  await writeFile(join(node.config.podResourcesSocket, '../../cpu_manager_state'), '{"policyName":"none"}');
  const { pod, container } = described(await preparedPod(node.kubelet), 'c1');
  await t.rejects(plugin.create(pod, container), {
    code: status.FAILED_PRECONDITION,
    message: 'container main: no CPU of NUMA node 1 is free for it',
  });
  const off = { ...pod, annotations: { 'tencent.com/gpu-numa': 'off' } };
  t.equal(await plugin.create(off, container), null);
});

test('containers with resource claims are handled like those of the device plugin', async (t) => {
  const runtime = await EmulatedRuntime.started(t);
  const dra = await startedDraNode(t, 2, {}, { nriSocket: runtime.path });
  const plugin = await runtime.readyPlugin();
  dra.cluster.server.seed('pods', {
    metadata: { name: 'user', namespace: 'team', uid: 'uid-user' },
    spec: {
      nodeName: NODE_NAME,
      containers: [{ name: 'main', resources: { claims: [{ name: 'gpu' }] } }],
      resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }],
    },
  });
  dra.allocate('shared', { cores: 30, pods: ['uid-user'] });
  const answer = await dra.prepare('shared');
  t.equal(answer['uid-shared']?.error, '');
  const adjust = await plugin.create(
    { id: 's', uid: 'uid-user', name: 'user', namespace: 'team' },
    { id: 'c1', pod_sandbox_id: 's', name: 'main', env: [`LD_LIBRARY_PATH=${THEIRS}`, 'NVIDIA_VISIBLE_DEVICES=all'] },
  );
  const environment = Object.fromEntries((adjust?.env ?? []).map(({ key, value }) => [key, value]));
  t.match(environment, { LD_LIBRARY_PATH: `${OURS}:${THEIRS}`, NVIDIA_VISIBLE_DEVICES: 'void' });
  t.ok(adjust?.mounts.some(({ destination }) => destination === '/etc/vcuda'));
  t.match(dra.agent.nri?.containers.get('c1'), { podUid: 'uid-user', slice: /^[0-9a-f]{16}$/ });
});
