import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { MpsControl } from '../../src/agent/slices/mps/mps-control.js';
import { silentLog } from '../../src/host/log.js';
import { SimulatedNode, type SimulatedNodeOptions } from '../../src/simulation/simulated-node.js';
import type { EmulatedPod } from '../../src/simulation/kubelet/pod.js';
import { eventually } from '../harness/eventually.js';
import { buildProgram, TenantProcess, tenantEnvironment, tenantSkipReason } from '../harness/gpu-machine/tenant.js';
import { scratchDirectory } from '../scratch.js';
import { libraryPath, noCompiler, notBuilt, SimulatedMachine } from './gpus/sim/simulated-machine.js';
import { limitsOf, only, admitted, runPod, sliceDirectory } from './node.js';
import { simplePod } from './pods.js';

const skip = notBuilt || tenantSkipReason || noCompiler;
const PROGRAM = join(dirname(libraryPath), '..', 'nvidia-cuda-mps-control');
const HOUR_US = 3_600_000_000;

/** Built once, by the first test. */
let built: string | null = null;
tap.teardown(() => built !== null && rmSync(dirname(built), { recursive: true }));

/** A node whose two GPUs of 80 SMs are shared in multiprocessors, and programs in its containers. */
async function nodeWith(t: Test, options: Partial<SimulatedNodeOptions> = {}, driverVersion = '615.10.01') {
  const directory = await scratchDirectory(t);
  const gpus = JSON.stringify({ driverVersion, gpus: [{}, {}] });
  const machine = new SimulatedMachine(gpus);
  built ??= buildProgram('test/harness/gpu-machine/tenant.c', mkdtempSync(join(tmpdir(), 'gm-mps-')), 'tenant');
  const program = built;
  const placed = new Map<number, string>();
  const notes: string[] = [];
  const evicted: string[] = [];
  const node = new SimulatedNode({
    directory,
    gpus,
    log: silentLog(),
    knowsPods: true,
    ...options,
    config: {
      simStatePath: machine.statePath,
      simNodePath: machine.nodePath,
      nvmlPath: libraryPath,
      smGpus: 'every',
      mpsControlPath: PROGRAM,
      ...options.config,
    },
    seams: {
      graceMs: 0,
      sliceNotices: { note: (owner, { reason, message }) => void notes.push(`${owner.pod} ${reason}: ${message}`) },
      evictor: { evict: ({ pod }, why) => void evicted.push(`${pod}: ${why}`) },
      containers: {
        placeOf: async (pid) => {
          const podUid = placed.get(pid);
          return podUid === undefined ? null : { containerId: podUid, podUid };
        },
        pidsOf: async () => [],
        sliceOf: () => null,
        nameOf: async () => 'main',
      },
    },
  });
  await node.start();
  const control = new MpsControl(PROGRAM, join(node.config.virtualManagerPath, '.mps'));
  t.teardown(async () => {
    await node.stop();
    await control.quit().catch(() => undefined);
  });
  const findings = (pod: EmulatedPod): readonly string[] =>
    (node.agent.vgpu.observe().find(({ owner }) => owner.podUid === pod.uid)?.findings ?? []).map(
      ({ code, message }) => `${code}: ${message}`,
    );
  return {
    node,
    machine,
    control,
    notes,
    evicted,
    findings,
    /** Starts a program in a pod's container; `folder`: what it has as CUDA_MPS_PIPE_DIRECTORY instead of its own. */
    start: (pod: EmulatedPod, given: Awaited<ReturnType<typeof runPod>>, kernelUs: number, folder?: string) => {
      const mount = given.mounts.find(({ containerPath }) => containerPath === '/run/nvidia-mps')?.hostPath ?? '';
      const gpu = Number(/nvidia(\d+)/.exec(given.annotations['tencent.com/vcuda-device'] ?? '')?.[1]);
      const running = new TenantProcess(program, ['16', String(kernelUs)], {
        ...tenantEnvironment(machine, { directory: sliceDirectory(given), gpu }),
        CUDA_MPS_PIPE_DIRECTORY: folder ?? mount,
      });
      placed.set(running.pid, pod.uid);
      t.teardown(() => running.kill());
      return running;
    },
  };
}

/** A pod that shares multiprocessors. */
function smPod(cores: number, annotations: Readonly<Record<string, string>> = {}): EmulatedPod {
  return { ...simplePod(cores, 8), annotations: { 'tencent.com/vcuda-compute': 'sm', ...annotations } };
}

const get = (control: MpsControl, folder: string, field: string): string => {
  const [server = '', name = ''] = folder.slice(control.directory.length + 1).split('/');
  return execFileSync(PROGRAM, ['namespace', 'get', name, server, field], { env: control.environment })
    .toString()
    .trim();
};

test('a container has a namespace with its cores and priority, and time is not limited', { skip }, async (t) => {
  const { node, control, start, findings, notes } = await nodeWith(t);
  const pod = smPod(30, { 'tencent.com/vcuda-priority': 'low' });
  const given = await runPod(node, pod);
  t.equal(given.environment['CUDA_MPS_PIPE_DIRECTORY'], '/run/nvidia-mps');
  const folder = given.mounts.find(({ containerPath }) => containerPath === '/run/nvidia-mps')?.hostPath ?? '';
  t.equal(get(control, folder, 'active-thread-percentage'), '30');
  t.equal(get(control, folder, 'client-priority'), '1');
  const limits = await limitsOf(given);
  t.match(limits.devices[0], { share: 100, memoryBytes: 8 * 256 * 2 ** 20 });
  const running = start(pod, given, 100);
  await eventually(async () => (await control.clients()).length === 1, 'the client');
  t.match(await control.clients(), [{ pid: running.pid, namespace: folder.split('/').at(-1) }]);
  await eventually(() => running.output.includes('launched'), 'its kernels');
  node.kubelet.annotate(pod.uid, { ...pod.annotations, 'tencent.com/vcuda-share-limit': '20' });
  await eventually(() => get(control, folder, 'active-thread-percentage') === '20', 'the lower share');
  t.match(node.agent.vgpu.observe()[0]?.devices, [{ share: 20, compute: 'sm' }]);
  t.same(findings(pod), []);
  t.same(notes, []);
});

test(
  'a program outside of its namespace is found, whatever folder it names, and its pod evicted',
  { skip },
  async (t) => {
    const { node, control, start, findings, evicted } = await nodeWith(t, { config: { auditPolicy: 'evict' } });
    const [first, second] = [smPod(30), smPod(30)];
    const [one, other] = [await runPod(node, first), await runPod(node, second)];
    const inside = start(second, other, 0);
    await eventually(async () => (await control.clients()).some(({ pid }) => pid === inside.pid), 'the client');
    const lost = start(first, one, 0, '/nowhere');
    await eventually(() => findings(first).some((text) => text.startsWith('outside-namespace')), 'the finding');
    t.match(findings(first), [new RegExp(`tenant \\(${lost.pid}\\) has no connection to MPS`)]);
    t.same(findings(second), []);
    await lost.kill();
    await eventually(() => findings(first).length === 0, 'the end of the finding');
    const thief = start(
      first,
      one,
      0,
      other.mounts.find(({ containerPath }) => containerPath === '/run/nvidia-mps')?.hostPath,
    );
    await eventually(
      () => findings(first).some((text) => text.includes(`(${thief.pid}) is in g`)),
      'the second finding',
    );
    await eventually(() => evicted.some((text) => text.startsWith(`${first.name}: `)), 'the eviction');
    t.notOk(evicted.some((text) => text.startsWith(`${second.name}: `)));
  },
);

test('neighbours of a client that is killed while it works are told', { skip }, async (t) => {
  const { node, control, start, notes, findings } = await nodeWith(t);
  const [first, second] = [smPod(30), smPod(30)];
  const [one, other] = [await runPod(node, first), await runPod(node, second)];
  const killed = start(first, one, HOUR_US);
  const beside = start(second, other, 100);
  await eventually(async () => (await control.clients()).length === 2, 'both clients');
  await eventually(() => beside.output.includes('launched'), 'the work of the second');
  // The agent has looked at the clients when it reports another program.
  start(second, other, 0, '/nowhere');
  await eventually(() => findings(second).length > 0, 'the finding');
  await killed.kill();
  await eventually(() => !beside.alive, 'the end of the second program');
  await eventually(() => notes.some((note) => note.startsWith(`${second.name} GPUNeighbourLost`)), 'the event');
  t.match(
    notes.find((note) => note.includes('GPUNeighbourLost')),
    /another container .* killed while it worked .*XID 31/,
  );
});

test('a pod that is being deleted is drained before its containers are killed', { skip }, async (t) => {
  const killedAt = new Map<string, number>();
  const { node, control, start } = await nodeWith(t, { killedAtMs: (uid) => killedAt.get(uid) ?? null });
  const [first, second] = [smPod(30), smPod(30)];
  const [one, other] = [await runPod(node, first), await runPod(node, second)];
  const working = start(first, one, HOUR_US);
  const beside = start(second, other, 100);
  await eventually(async () => (await control.clients()).length === 2, 'both clients');
  killedAt.set(first.uid, Date.now() + 1_500);
  await eventually(async () => (await control.clients()).every(({ pid }) => pid !== working.pid), 'the drain');
  await working.kill();
  const launched = beside.output;
  t.match(launched, /holds/);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.ok(beside.alive, 'the neighbour goes on');
});

test(
  'the daemon outlives the agent, is started again when it dies, and ends with the last slice',
  { skip },
  async (t) => {
    const { node, control, start, notes } = await nodeWith(t);
    const [first, second] = [smPod(30), smPod(20)];
    const [one] = [await runPod(node, first), await runPod(node, second)];
    const running = start(first, one, 0);
    await eventually(async () => (await control.clients()).length === 1, 'the client');
    const pidOf = async (): Promise<number> => [...((await control.state())?.servers.values() ?? [])][0] ?? 0;
    const daemon = await pidOf();
    process.kill(daemon, 'SIGKILL');
    await eventually(async () => (await control.state())?.namespaces.size === 2, 'both namespaces');
    await eventually(() => notes.some((note) => note.startsWith(`${first.name} GPUShareLost`)), 'the event');
    t.notOk(
      notes.some((note) => note.startsWith(`${second.name} GPUShareLost`)),
      'no program ran there',
    );
    const next = await pidOf();
    t.not(next, daemon);
    await running.kill();
    const again = start(first, one, 0);
    await eventually(async () => (await control.clients()).length === 1, 'a client of the new daemon');
    await node.stopAgent();
    t.equal(await pidOf(), next, 'the daemon goes on without the agent');
    const [server = ''] = (await control.state())?.servers.keys() ?? [];
    await control.createNamespace(server, 's0123');
    await node.startAgent();
    await eventually(() => node.agent.vgpu.observe().length === 2, 'both slices');
    t.equal(await pidOf(), next);
    await eventually(async () => (await control.state())?.namespaces.size === 2, 'the end of a forgotten namespace');
    t.ok(again.alive);
    await again.kill();
    node.kubelet.remove(first.uid);
    node.kubelet.remove(second.uid);
    await node.agent.allocator.reconcile();
    await node.agent.allocator.reconcile();
    await eventually(async () => (await control.state()) === null, 'the end of the daemon');
  },
);

test('a container does not start where its share would not be kept', { skip }, async (t) => {
  const { node, control } = await nodeWith(t, { config: { mpsControlPath: '/nonexistent/mps' } });
  const pod = smPod(30);
  const given = only(admitted(await node.kubelet.admit(pod)));
  await t.rejects(node.kubelet.startContainer(pod.uid, given.name), /\/nonexistent\/mps does not run: .*ENOENT/);
  t.equal(await control.state(), null);
});

for (const [title, config, version] of [
  ['without the flag', { smGpus: 'none' as const }, '615.10.01'],
  ['with a driver before 615', {}, '610.43.02'],
] as const)
  test(`${title} no pod shares multiprocessors, and nothing is started`, { skip }, async (t) => {
    const { node } = await nodeWith(t, { config }, version);
    const given = await runPod(node, simplePod(30, 8));
    t.equal(given.environment['CUDA_MPS_PIPE_DIRECTORY'], undefined);
    t.match((await limitsOf(given)).devices[0], { share: 30 });
    t.match(await node.kubelet.admit(smPod(30)), { ok: false, message: /tencent.com\/vcuda-compute: sm/ });
    t.throws(() => readFileSync(join(node.config.virtualManagerPath, '.mps', 'log', 'daemon.log')), /ENOENT/);
  });
