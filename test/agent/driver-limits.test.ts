import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { START_EVENT, WANTED_EVENTS } from '../../src/agent/nri/plugin-service.js';
import { doubleGroups, kernelGroups, kernelGroupsSkipReason } from '../harness/control-groups/test-groups.js';
import { eventually } from '../harness/eventually.js';
import { admittedPod, CONTEXT_MIB, limitedNode, limitsSkipReason as skip } from './limited-node.js';
import { EmulatedRuntime } from './nri/emulated-runtime.js';

const MIB = 2 ** 20;

const KINDS = [
  ['a double of the control groups', doubleGroups, false],
  ['the control groups of the kernel', async (t: Test) => kernelGroups(t), kernelGroupsSkipReason()],
] as const;

for (const [name, open, unable] of KINDS)
  test(`a static program is held by its memory limit, in ${name}`, { skip: skip || unable }, async (t) => {
    const { node, gpu, start, isEnforced, doctor } = await limitedNode(t, { groups: await open(t) });
    t.same(node.agent.vgpu.memoryEnforcer(gpu), { by: 'driver', backend: 'misc' });
    t.same(await doctor(), ['ok: GPU 0: the driver enforces memory limits (misc)']);
    const { pod, slice } = await admittedPod(node, 8);
    const { running } = start(pod, { slice, kind: 'static' });
    await eventually(() => isEnforced(pod), 'the limit in the driver');
    t.equal(await running.order('total'), 'total 2048', 'the driver shows the limit');
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
    t.equal(await running.order('managed'), 'managed 0', 'the driver does not count managed memory');
    await running.kill();
  });

for (const [name, open, unable] of KINDS)
  test(
    `groups that a container makes below its own are held with it, in ${name}`,
    { skip: skip || unable },
    async (t) => {
      const { node, made, start, isEnforced } = await limitedNode(t, { groups: await open(t) });
      const { pod, slice } = await admittedPod(node, 8);
      const { group, running } = start(pod, { slice, kind: 'static' });
      await eventually(() => isEnforced(pod), 'the limit in the driver');
      const sub = made.below(group);
      const other = start(pod, { slice, kind: 'static' }, sub).running;
      t.equal(await other.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
      t.match(await running.order('fill'), /^no context 2$/, 'nothing is left for a second process');
      const third = start(pod, { slice, kind: 'static' }).running;
      made.enter(sub, third.pid);
      t.match(await third.order('fill'), /^no context 2$/, 'nor for one that was moved');
      await Promise.all([running.kill(), other.kill(), third.kill()]);
    },
  );

test('on a driver before 615 a static program is not held, and reported as before', { skip }, async (t) => {
  const { node, gpu, start, findings, isEnforced, doctor } = await limitedNode(t, { driverVersion: '610.43.02' });
  t.same(await doctor(), ['ok: GPU 0: the control library enforces memory limits; drivers from 615 on can too']);
  t.same(node.agent.vgpu.memoryEnforcer(gpu), { by: 'library', reason: null });
  const { pod, slice } = await admittedPod(node, 8);
  const { running } = start(pod, { slice, kind: 'static' });
  t.equal(await running.order('total'), 'total 16128');
  t.equal(await running.order('fill'), `held ${16_128 - CONTEXT_MIB} 2`);
  await eventually(() => findings(pod).some((finding) => finding.startsWith('no-library')), 'the finding');
  t.equal(isEnforced(pod), false);
});

test(
  'a program with the control library gets its limit to the MiB, and managed memory is held by the library',
  { skip },
  async (t) => {
    const { node, start, isEnforced } = await limitedNode(t);
    const { pod, slice } = await admittedPod(node, 8);
    const { running } = start(pod, { slice, kind: 'linked' });
    await eventually(() => isEnforced(pod), 'the limit in the driver');
    t.equal(await running.order('total'), 'total 2048');
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
    t.equal(await running.order('managed'), 'managed 2');
  },
);

test(
  'the limit in the driver follows annotations, in both directions and while the agent is away',
  { skip },
  async (t) => {
    const { node, start, isEnforced, limitsOf } = await limitedNode(t);
    const { pod, slice } = await admittedPod(node, 8);
    const { running, group } = start(pod, { slice, kind: 'static' });
    const limited = (mib: number) => async (): Promise<boolean> => {
      const limits = await limitsOf(group);
      return typeof limits !== 'string' && limits.hardBytes === mib * MIB && limits.softBytes === mib * MIB;
    };
    await eventually(() => isEnforced(pod), 'the limit in the driver');
    node.kubelet.annotate(pod.uid, { 'tencent.com/vcuda-memory-limit': '1Gi' });
    await eventually(limited(1024), 'the lower limit');
    t.equal(await running.order('fill'), `held ${1024 - CONTEXT_MIB} 2`);
    node.kubelet.annotate(pod.uid, {});
    await eventually(limited(2048), 'the former limit');
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);

    await running.order('free');
    await node.stopAgent();
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`, 'the limit holds without an agent');
    await running.order('free');
    node.kubelet.annotate(pod.uid, { 'tencent.com/vcuda-memory-limit': '512Mi' });
    await node.startAgent();
    await eventually(limited(512), 'the limit that the agent missed');
    t.equal(await running.order('fill'), `held ${512 - CONTEXT_MIB} 2`);
  },
);

test('a limit that somebody else removes is set again and reported', { skip }, async (t) => {
  const { node, start, isEnforced, limitsOf, setLimits, findings } = await limitedNode(t);
  const { pod, slice } = await admittedPod(node, 8);
  const { group } = start(pod, { slice, kind: 'linked' });
  await eventually(() => isEnforced(pod), 'the limit in the driver');
  await setLimits(group, { softBytes: 0, hardBytes: null });
  await eventually(async () => (await limitsOf(group)) !== 'none', 'the limit to be set again');
  await eventually(() => findings(pod).length > 0, 'the finding');
  t.match(findings(pod), [
    /^limit-changed: somebody else changed the memory limit in the driver to no limit; .* 2048 MiB again/,
  ]);
});

test('each start of a container gets the limit in its new group', { skip }, async (t) => {
  const { node, made, start, isEnforced, limitsOf } = await limitedNode(t);
  const { pod, slice } = await admittedPod(node, 8);
  const before = start(pod, { slice, kind: 'static' });
  await eventually(() => isEnforced(pod), 'the limit in the driver');
  await before.running.kill();
  made.remove(before.group);
  await node.kubelet.startContainer(pod.uid, 'main');
  const { group, running } = start(pod, { slice, kind: 'static' });
  await eventually(async () => typeof (await limitsOf(group)) !== 'string', 'the limit of the new group');
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
});

test('with dmem no group above a container keeps a reservation when the container goes', { skip }, async (t) => {
  const { node, gpu, made, start, isEnforced, limitsOf } = await limitedNode(t, { memoryLimits: 'dmem' });
  t.same(node.agent.vgpu.memoryEnforcer(gpu), { by: 'driver', backend: 'dmem' });
  const { pod, slice } = await admittedPod(node, 8);
  const { group, running } = start(pod, { slice, kind: 'static' });
  await eventually(() => isEnforced(pod), 'the limit in the driver');
  t.match(await limitsOf(group), { softBytes: 0, hardBytes: 2048 * MIB });
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
  await running.kill();
  made.remove(group);
  t.match(readFileSync(join(made.root, 'kubepods', 'dmem.min'), 'utf8'), /vidmem 0\n$/);
});

test('the runtime waits at StartContainer until the limit is set', { skip }, async (t) => {
  const runtime = await EmulatedRuntime.started(t);
  const { node, made, limitsOf, start } = await limitedNode(t, { config: { nriSocket: runtime.path } });
  const plugin = await runtime.plugin();
  await plugin.registered;
  t.equal(await plugin.configure(), WANTED_EVENTS | START_EVENT);
  await plugin.synchronize({ pods: [], containers: [] });
  for (const tell of ['StartContainer', 'START_CONTAINER'] as const) {
    const { pod, slice } = await admittedPod(node, 8);
    const { path, id } = made.container(pod.uid);
    const sandbox = { id: `sandbox-${pod.uid}`, uid: pod.uid, name: pod.name, namespace: pod.namespace };
    const container = {
      id,
      pod_sandbox_id: sandbox.id,
      name: 'main',
      linux: { cgroups_path: path.slice(made.root.length) },
    };
    await plugin.create(sandbox, container);
    if (tell === 'StartContainer') await plugin.tell(tell, { pod: sandbox, container });
    else await plugin.tellStateChange(tell, { pod: sandbox, container });
    t.match(await limitsOf(path), { hardBytes: 2048 * MIB }, 'before the program starts');
    const { running } = start(pod, { slice, kind: 'static' }, path);
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
    await running.kill();
  }
});

test('a container that started without the agent gets its limit when the runtime lists it', { skip }, async (t) => {
  const runtime = await EmulatedRuntime.started(t);
  const { node, made, limitsOf } = await limitedNode(t, { config: { nriSocket: runtime.path } });
  const { pod } = await admittedPod(node, 8);
  const { path, id } = made.container(pod.uid);
  const sandbox = { id: 'sandbox', uid: pod.uid, name: pod.name, namespace: pod.namespace };
  const linux = { cgroups_path: path.slice(made.root.length) };
  await runtime.readyPlugin({
    pods: [sandbox],
    containers: [{ id, pod_sandbox_id: 'sandbox', name: 'main', state: 'CONTAINER_RUNNING', linux }],
  });
  await eventually(async () => typeof (await limitsOf(path)) !== 'string', 'the limit');
  t.match(await limitsOf(path), { hardBytes: 2048 * MIB });
});

test('a driver that refuses the limit keeps no container from starting, and the pod is told', { skip }, async (t) => {
  const { node, machine, notes, start } = await limitedNode(t);
  await machine.order('fault', 'nvmlDeviceSetMemoryLimits_v1', 'no-permission');
  const { pod, slice } = await admittedPod(node, 8);
  const { running } = start(pod, { slice, kind: 'linked' });
  await eventually(() => notes.some((note) => note.startsWith('GPUDriverLimit')), 'the event');
  t.match(
    notes.find((note) => note.startsWith('GPUDriverLimit')),
    /library alone enforces it: 2048 MiB on GPU-.*: no permission/,
  );
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`, 'the library enforces it');
  await machine.order('clear');
});

test('--memory-enforcement=library takes back what an earlier run set', { skip }, async (t) => {
  const { node, gpu, start, isEnforced, limitsOf } = await limitedNode(t);
  const { pod, slice } = await admittedPod(node, 8);
  const { group, running } = start(pod, { slice, kind: 'linked' });
  await eventually(() => isEnforced(pod), 'the limit in the driver');
  await node.stopAgent();
  Object.assign(node.config, { memoryEnforcement: 'library' });
  await node.startAgent();
  await eventually(async () => (await limitsOf(group)) === 'none', 'the limit to be removed');
  t.match(node.agent.vgpu.memoryEnforcer(gpu), { by: 'library', reason: '--memory-enforcement=library' });
  t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
});

for (const [what, setting, reason] of [
  ['control groups of version 1', { driverVersion: '615.10.01' }, /version 1, expected version 2/],
  ['a driver that has its accounting off', { memoryLimits: 'off' }, /keeps no memory limits of control groups here/],
] as const)
  test(`the library enforces memory limits with ${what}, and the reason is known`, { skip }, async (t) => {
    const groups = await doubleGroups(t);
    if (what.includes('version 1')) rmSync(join(groups.root, 'cgroup.controllers'));
    const { node, gpu, start, doctor } = await limitedNode(t, { ...setting, groups });
    t.match(node.agent.vgpu.memoryEnforcer(gpu), { by: 'library', reason });
    const { pod, slice } = await admittedPod(node, 8);
    const { running } = start(pod, { slice, kind: 'linked' });
    t.equal(await running.order('fill'), `held ${2048 - CONTEXT_MIB} 2`);
    t.match(await doctor(), [/^warning: GPU 0: the control library alone enforces memory limits: /]);
    t.match(await doctor(), [reason]);
    await node.stopAgent();
    Object.assign(node.config, { memoryEnforcement: 'driver' });
    await t.rejects(node.startAgent(), { message: /--memory-enforcement=driver: GPU 0: .*; use auto/ });
  });
