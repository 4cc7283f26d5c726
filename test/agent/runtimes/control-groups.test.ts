import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { controlGroups } from '../../../src/agent/runtimes/control-groups.js';
import {
  doubleGroups,
  kernelGroups,
  kernelGroupsSkipReason,
  type TestGroups,
} from '../../harness/control-groups/test-groups.js';
import { scratchDirectory } from '../../scratch.js';

const UID = '11111111-2222-3333-4444-555555555555';

/** What the agent relies on, of the kernel's control groups and of the double that other tests use. */
function contract(name: string, open: (t: Test) => Promise<TestGroups>, skip: string | false): void {
  test(`${name}: a process is found in the group of its container, however deep it is`, { skip }, async (t) => {
    const made = await open(t);
    const child = spawn('sleep', ['1000']);
    t.teardown(async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    const pid = child.pid ?? 0;
    const groups = controlGroups({
      ...made,
      pidOf: async (podUid, name) => (podUid + name === `${UID}main` ? pid : null),
    });
    t.equal(groups.problem, null);
    const container = made.container(UID);
    t.equal(groups.ofProcess(pid)?.path === container.path, false);
    made.enter(container.path, pid);
    t.same(groups.ofProcess(pid), { path: container.path, podUid: UID });
    t.equal(await groups.ofContainer(UID, 'main'), container.path);
    t.equal(await groups.ofContainer(UID, 'side'), null);
    made.enter(made.below(container.path), pid);
    t.same(groups.ofProcess(pid), { path: container.path, podUid: UID });
    t.equal(groups.exists(container.path), true);
    t.equal(groups.named(container.path.slice(made.root.length)), container.path);
    const other = made.container('another');
    made.remove(other.path);
    t.equal(groups.exists(other.path), false);
    t.equal(groups.named(other.path.slice(made.root.length)), null);
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
}

contract('double', doubleGroups, false);
contract('kernel', async (t) => kernelGroups(t), kernelGroupsSkipReason());

test('the name of a group is read as runtimes write it, with systemd and without', async (t) => {
  const root = await scratchDirectory(t);
  const id = 'a'.repeat(64);
  const make = (path: string): string => {
    mkdirSync(join(root, path), { recursive: true });
    return join(root, path);
  };
  const groups = controlGroups({ root, pidOf: async () => null });
  const named = (cgroupsPath: string): string | null => groups.named(cgroupsPath);
  const pod = 'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice';
  t.equal(named(`kubepods-burstable-podu_1.slice:cri-containerd:${id}`), null, 'it does not exist yet');
  const scope = make(`${pod}/cri-containerd-${id}.scope`);
  t.equal(named(`kubepods-burstable-podu_1.slice:cri-containerd:${id}`), scope);
  const mixed = make(`kubepods-podu_2.slice:cri-containerd:${id}`);
  t.equal(named(`kubepods-podu_2.slice:cri-containerd:${id}`), mixed, 'a runtime without systemd');
  const plain = make(`kubepods/podu/${id}`);
  t.equal(named(`/kubepods/podu/${id}`), plain);
  t.equal(named(''), null, 'the root is nobody’s');
  t.equal(named(`/kubepods/../kubepods/podu/${id}`), null);
  t.equal(named('/'), null);
});

test('control groups of version 1 are a problem, and dmem is recognised by its memory of NVIDIA GPUs', async (t) => {
  const root = await scratchDirectory(t);
  const open = () => controlGroups({ root, pidOf: async () => null });
  t.match(open().problem, /version 1, expected version 2/);
  writeFileSync(join(root, 'cgroup.controllers'), 'cpu memory\n');
  t.equal(open().problem, null);
  t.equal(open().hasGpuMemory(), false);
  writeFileSync(join(root, 'dmem.capacity'), 'drm/0000:03:00.0/vram0 8514437120\n');
  t.equal(open().hasGpuMemory(), false, 'memory of another vendor');
  writeFileSync(join(root, 'dmem.capacity'), 'drm/0000:03:00.0/vram0 1\nnvidia/00000000:02:00.0/vidmem 17179869184\n');
  t.equal(open().hasGpuMemory(), true);
});

test('the group of a pod is found below the folders of kubelets, with systemd and without', async (t) => {
  const root = await scratchDirectory(t);
  const make = (path: string): string => {
    mkdirSync(join(root, path), { recursive: true });
    return join(root, path);
  };
  const groups = controlGroups({ root, pidOf: async () => null });
  const uid = (digit: string): string => UID.replaceAll('1', digit);
  const slice = (digit: string): string => `pod${uid(digit).replaceAll('-', '_')}.slice`;
  for (const [digit, path] of [
    ['a', `kubepods/pod${uid('a')}`],
    ['b', `kubepods/burstable/pod${uid('b')}`],
    ['c', `kubepods.slice/kubepods-${slice('c')}`],
    ['d', `kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-${slice('d')}`],
    ['e', `kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-${slice('e')}`],
  ] as const) {
    const made = make(path);
    t.equal(groups.ofPod(uid(digit)), made, path);
  }
  make(`kubepods/pod${uid('a')}/${'a'.repeat(64)}/kubepods/pod${uid('f')}`);
  t.equal(groups.ofPod(uid('f')), null, 'a container names groups below its own as it likes');
  make(`system.slice/pod${uid('f')}`);
  t.equal(groups.ofPod(uid('f')), null);
});
