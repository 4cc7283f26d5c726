import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { eventually } from '../harness/eventually.js';
import { doubleGroups } from '../harness/control-groups/test-groups.js';
import { admittedPod, CONTEXT_MIB, limitedNode, limitsSkipReason as skip } from './limited-node.js';
import { runPod, sliceDirectory } from './node.js';
import { EmulatedRuntime } from './nri/emulated-runtime.js';
import { simplePod } from './pods.js';

const MIB = 2 ** 20;

/** Whether the limits file tells the library of new processes to leave memory to the driver. */
function isLeftToDriver(slice: string): boolean {
  const decoded = decodeLimits(readFileSync(join(slice, 'vgpu.limits')));
  return decoded.ok && decoded.limits.memoryByDriver;
}

test('without NRI a static program is held from its first allocation, by the limit of its pod', { skip }, async (t) => {
  const { node, made, start, limitsOf } = await limitedNode(t);
  const pod = simplePod(30, 8);
  const group = made.pod(pod.uid);
  const slice = sliceDirectory(await runPod(node, pod));
  t.match(await limitsOf(group), { hardBytes: 2048 * MIB }, 'when the kubelet may go on');
  const { running } = start(pod, { slice, kind: 'static' });
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
});

test('the limit of a pod follows its containers, and a resize', { skip }, async (t) => {
  const { node, made, limitsOf } = await limitedNode(t);
  const pod = simplePod(30, 8);
  const group = made.pod(pod.uid);
  await runPod(node, pod);
  node.kubelet.annotate(pod.uid, { 'tencent.com/vcuda-memory-limit': '1Gi' });
  const hard = async (mib: number): Promise<boolean> => {
    const limits = await limitsOf(group);
    return typeof limits !== 'string' && limits.hardBytes === mib * MIB && limits.softBytes === 0;
  };
  await eventually(() => hard(1024), 'the lower limit');
  node.kubelet.annotate(pod.uid, {});
  await eventually(() => hard(2048), 'the former limit');
});

test(
  'where the runtime waits, the library charges no device memory, and managed memory as before',
  { skip },
  async (t) => {
    const runtime = await EmulatedRuntime.started(t);
    const { node, made, start, isEnforced } = await limitedNode(t, { config: { nriSocket: runtime.path } });
    const plugin = await runtime.readyPlugin({ pods: [], containers: [] });
    const { pod, slice } = await admittedPod(node, 8);
    t.equal(isLeftToDriver(slice), false, 'before the container exists');
    const { path, id } = made.container(pod.uid);
    const sandbox = { id: 'sandbox', uid: pod.uid, name: pod.name, namespace: pod.namespace };
    const linux = { cgroups_path: path.slice(made.root.length) };
    const container = { id, pod_sandbox_id: sandbox.id, name: 'main', linux };
    await plugin.create(sandbox, container);
    await plugin.tell('StartContainer', { pod: sandbox, container });
    t.equal(isLeftToDriver(slice), true);
    const { running } = start(pod, { slice, kind: 'linked' }, path);
    const held = (): number | null => node.agent.vgpu.slices.started.get(idOf(slice))?.held(0) ?? null;
    t.equal(await running.order('total'), 'total 2048');
    t.equal(await running.order('managed'), 'managed 0');
    t.equal(held(), 1024 * MIB);
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`, 'the driver refuses');
    t.equal(isEnforced(pod), true);
    t.equal(held(), 1024 * MIB, 'the library charges no device memory');
    await eventually(
      async () => (await running.order('managed')) === 'managed 2',
      'the library to refuse managed memory beyond the limit',
    );

    await running.kill();
    made.remove(path);
    await node.kubelet.startContainer(pod.uid, 'main');
    t.equal(isLeftToDriver(slice), false, 'until the next container has its limit');
  },
);

const idOf = (slice: string): string => slice.split('/').at(-1) ?? '';

test('a limit that the library leaves to the driver outlives --memory-enforcement=library', { skip }, async (t) => {
  const runtime = await EmulatedRuntime.started(t);
  const groups = await doubleGroups(t);
  const { node, made, start, limitsOf } = await limitedNode(t, { groups, config: { nriSocket: runtime.path } });
  const plugin = await runtime.readyPlugin({ pods: [], containers: [] });
  const { pod, slice } = await admittedPod(node, 8);
  const { path, id } = made.container(pod.uid);
  const sandbox = { id: 'sandbox', uid: pod.uid, name: pod.name, namespace: pod.namespace };
  const container = {
    id,
    pod_sandbox_id: sandbox.id,
    name: 'main',
    state: 'CONTAINER_RUNNING' as const,
    linux: { cgroups_path: path.slice(made.root.length) },
  };
  await plugin.create(sandbox, container);
  await plugin.tell('StartContainer', { pod: sandbox, container });
  const { running } = start(pod, { slice, kind: 'linked' }, path);
  t.equal(await running.order('total'), 'total 2048');
  await node.stopAgent();
  Object.assign(node.config, { memoryEnforcement: 'library' });
  await node.startAgent();
  await runtime.readyPlugin({ pods: [sandbox], containers: [container] });
  await eventually(
    () => node.agent.vgpu.observe()[0]?.devices[0]?.memoryByDriver === true,
    'the container to be found',
  );
  t.match(await limitsOf(path), { hardBytes: 2048 * MIB });
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
});
