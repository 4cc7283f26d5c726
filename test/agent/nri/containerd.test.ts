import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { nriSkipReason } from './containerd2.js';
import { environmentOf, findings, nodeWith, OURS, preparedPod, startedEngine, THEIRS } from './runtime-setting.js';

const skip = nriSkipReason();

test('the agent configures the containers of a real containerd', { skip }, async (t) => {
  const engine = await startedEngine(t);
  const node = await nodeWith(t, engine);
  t.match(node.agent.nri?.plugin.runtime, { name: 'containerd', version: /^v?2\./ });

  await t.test('a correctly configured container is not changed, and is known by its id', async (t) => {
    const before = node.agent.nri?.corrected();
    const { pod, spec } = await preparedPod(node.kubelet);
    const id = await engine.run(spec);
    t.match(await environmentOf(engine, id), { LD_LIBRARY_PATH: OURS });
    t.match(node.agent.nri?.containers.get(id), { podUid: pod.uid, name: 'main', slice: /^[0-9a-f]{16}$/ });
    t.equal(node.agent.nri?.corrected(), before);
  });

  await t.test('the directory of the control library precedes the LD_LIBRARY_PATH of the pod', async (t) => {
    const { pod, spec } = await preparedPod(node.kubelet, {
      environment: { LD_LIBRARY_PATH: THEIRS, NVIDIA_VISIBLE_DEVICES: 'all', LD_PRELOAD: '/driver/libcuda.so.1' },
    });
    const environment = await environmentOf(engine, await engine.run(spec));
    t.match(environment, { LD_LIBRARY_PATH: `${OURS}:${THEIRS}`, NVIDIA_VISIBLE_DEVICES: /^GPU-/, PATH: '/bin' });
    t.equal(environment.LD_PRELOAD, '');
    t.equal(node.agent.nri?.corrected(), 1);
    t.same(findings(node, pod.uid), []);
  });

  await t.test('a variable that both kubelet and pod set cannot be changed, and the audit reports it', async (t) => {
    const { pod, spec } = await preparedPod(node.kubelet);
    const id = await engine.run({ ...spec, laterEnvironment: { LD_LIBRARY_PATH: THEIRS } });
    t.match(await environmentOf(engine, id), { LD_LIBRARY_PATH: THEIRS });
    await eventually(() => findings(node, pod.uid).length > 0, 'a finding about the container');
    t.match(findings(node, pod.uid), [/^not-injected: .*LD_LIBRARY_PATH is "\/opt\/conda\/lib", and set twice/]);
  });

  await t.test('missing, covered and writable mounts are corrected', async (t) => {
    const directory = await scratchDirectory(t);
    await mkdir(join(directory, 'sub'));
    const { spec } = await preparedPod(node.kubelet, {
      mounts: [{ hostPath: directory, containerPath: '/etc/vcuda', writable: true }],
    });
    const id = await engine.run(spec);
    const { output } = await engine.exec(id, ['/bin/ls', '/etc/vcuda']);
    t.match(output, /^vgpu\.limits$/m);
    const mounts = (await engine.exec(id, ['/bin/cat', '/proc/self/mountinfo'])).output.split('\n');
    const options = (path: string): string | undefined =>
      mounts.map((line) => line.split(' ')).find(([, , , , place]) => place === path)?.[5];
    t.match(options('/etc/vcuda'), /\bro\b/);
    t.match(mounts.join('\n'), / \/etc\/vcuda\/\S+ rw,/, 'the usage file is writable');
  });

  await t.test('a container without a GPU is not changed', async (t) => {
    const id = await engine.run({
      pod: { uid: 'no-gpu', namespace: 'default', name: 'no-gpu' },
      name: 'main',
      command: ['/bin/sleep', '1002'],
      environment: { LD_LIBRARY_PATH: THEIRS, LD_PRELOAD: '/driver/libcuda.so.1' },
    });
    t.match(await environmentOf(engine, id), { LD_LIBRARY_PATH: THEIRS, LD_PRELOAD: '/driver/libcuda.so.1' });
    t.equal(node.agent.nri?.containers.get(id), null);
  });

  await t.test('sixteen containers start at once', async (t) => {
    const pods = [];
    for (let count = 0; count < 8; count += 1)
      pods.push(await preparedPod(node.kubelet, { environment: { LD_LIBRARY_PATH: THEIRS } }));
    const others = pods.map((_, index) => ({
      pod: { uid: `other-${index}`, namespace: 'default', name: `other-${index}` },
      name: 'main',
      command: ['/bin/sleep', '1003'],
      environment: { LD_LIBRARY_PATH: THEIRS },
    }));
    const ids = await Promise.all([...pods.map(({ spec }) => spec), ...others].map((spec) => engine.run(spec)));
    const paths = await Promise.all(ids.map(async (id) => (await environmentOf(engine, id)).LD_LIBRARY_PATH));
    t.same(paths.slice(0, 8), Array<string>(8).fill(`${OURS}:${THEIRS}`));
    t.same(paths.slice(8), Array<string>(8).fill(THEIRS));
    t.equal(node.agent.nri?.plugin.losses, 0);
    for (const { pod } of pods) node.kubelet.remove(pod.uid);
  });
});

test('a container is bound to the CPUs near its GPU, but not under a static CPU manager', { skip }, async (t) => {
  const engine = await startedEngine(t);
  // The first CPU of this machine stands for a NUMA node.
  const systemDirectory = await scratchDirectory(t);
  for (const [path, text] of [
    ['cpu/online', '0-1'],
    ['node/node0/cpulist', '1'],
    ['node/node1/cpulist', '0'],
  ] as const) {
    await mkdir(join(systemDirectory, path, '..'), { recursive: true });
    await writeFile(join(systemDirectory, path), `${text}\n`);
  }
  const node = await nodeWith(t, engine, {
    gpus: JSON.stringify({ gpus: [{ numaNode: 1 }] }),
    config: { cpuAffinity: 'prefer' },
    seams: { systemDirectory },
  });
  const manager = join(node.config.podResourcesSocket, '../../cpu_manager_state');
  const cpus = async (policy: string | null): Promise<string | undefined> => {
    if (policy !== null) await writeFile(manager, JSON.stringify({ policyName: policy, defaultCpuSet: '' }));
    const { spec } = await preparedPod(node.kubelet);
    const { output } = await engine.exec(await engine.run(spec), ['/bin/cat', '/proc/1/status']);
    return /^Cpus_allowed_list:\s*(\S+)/m.exec(output)?.[1];
  };
  const all = await cpus(null);
  t.not(all, '0', 'an unknown CPU manager is not overruled');
  t.equal(await cpus('none'), '0');
  t.equal(await cpus('static'), all);
});
