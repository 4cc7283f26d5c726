import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { libraryPath, SimulatedMachine } from '../agent/gpus/sim/simulated-machine.js';
import type { Driver, GroupMemory } from '../../src/agent/gpus/driver.js';
import { controlGroups } from '../../src/agent/runtimes/control-groups.js';
import { nativeSkipReason, PROBE, simulatedHost } from '../containers/simulated-host.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { AgentProcess } from './agent-process.js';
import { NODE, TestCluster } from './cluster.js';
import { importImage } from './image.js';
import { podManifest } from './pods.js';

/**
 * Memory limits in the driver on a real Kubernetes with control groups of version 2 and containerd's NRI: the pod has
 * its limit before its first instruction, whatever is killed or restarted around it, and a hostile tenant keeps it.
 */
const CGROUP2_MAGIC = 0x6367_7270;
const ROOT = '/sys/fs/cgroup';
const IMAGE = 'docker.io/local/limits:1';
const BLOCKS = 4;
const LIMIT_MIB = BLOCKS * 256;
/** Where a container has the state of the simulated machine. */
const MACHINE = '/machine';

const cluster = new TestCluster();
const skip =
  statfsSync(ROOT).type !== CGROUP2_MAGIC
    ? 'needs control groups v2: npm run test:cgroup2 -- driver-limits'
    : cluster.version.atLeast(30)
      ? nativeSkipReason()
      : 'needs containerd 2, which is tested from Kubernetes 1.30 on';

tap.setTimeout(timeLimit(1_800_000));

/** A program that finds its own copy of the driver, and so runs without the control library. */
const FREE = `mkdir -p /tmp/own && cp /usr/local/nvidia/lib64/libcuda-origin.so.1 /tmp/own/libcuda.so.1 && LD_LIBRARY_PATH=/tmp/own`;
const FILL = `${FREE} ${PROBE} memory`;

/** One for the whole file: the driver's library has one machine for each process. */
let opened: { readonly machine: SimulatedMachine; readonly outsider: Driver } | null = null;

function theMachine(): NonNullable<typeof opened> {
  if (opened !== null) return opened;
  const description = JSON.stringify({ driverVersion: '615.10.01', gpus: [{}] });
  const machine = new SimulatedMachine(description, { memoryLimits: 'misc', controlGroups: ROOT });
  const outsider = machine.open();
  tap.teardown(() => outsider.close());
  return (opened = { machine, outsider });
}

async function setting(t: Test) {
  const { machine, outsider } = theMachine();
  const scratch = mkdtempSync(join(tmpdir(), 'gm-'));
  t.teardown(() => rmSync(scratch, { recursive: true, force: true }));
  const { files, config } = await simulatedHost(scratch);
  importImage(cluster.containerdSocket, IMAGE, files);
  const agent = new AgentProcess(
    cluster,
    readFileSync(machine.nodePath, 'utf8'),
    [
      `--volume-config=${config.volumeConfigPath}`,
      `--host-root=${config.hostRoot}`,
      `--native-path=${config.nativePath}`,
      `--sim-state=${machine.statePath}`,
      `--nvml-path=${libraryPath}`,
      '--nri',
      `--nri-socket=${cluster.nriSocket}`,
    ],
    { directory: join(scratch, 'agent') },
  );
  t.teardown(() => agent.stop());
  await agent.start();
  const gpu = machine.node.gpus[0]?.uuid ?? '';
  const groups = controlGroups({ pidOf: async () => null });
  const onMachine = `export GPU_SIM_STATE=${MACHINE} GPU_SIM_NODE=${machine.nodePath};`;
  const memoryOf = async (group: string): Promise<GroupMemory> =>
    (await outsider.groupLimiter?.get(gpu, group)) ?? 'gone';
  /** Starts a pod that runs `command` and then waits; restarted if `policy` says so. */
  const start = async (
    name: string,
    command: string,
    { policy = 'Never', privileged = false }: { readonly policy?: string; readonly privileged?: boolean } = {},
  ): Promise<void> => {
    const container = {
      name: 'main',
      cores: 30,
      memoryBlocks: BLOCKS,
      command: `${onMachine} ${command}; echo DONE; exec sleep 100000`,
      image: IMAGE,
      directories: { [MACHINE]: machine.statePath, [machine.nodePath]: machine.nodePath },
    };
    const pod = podManifest(name, [container], [], policy);
    if (privileged)
      for (const one of (pod as { spec: { containers: { securityContext: object }[] } }).spec.containers)
        one.securityContext = { privileged: true };
    await cluster.apply(pod);
  };
  /** What a pod said; empty for one that the kubelet refused because no agent answered. */
  const said = (name: string): Promise<string> =>
    until(`${name} to have run`, async () => {
      const phase = await cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.phase}');
      if (phase === 'Failed') return { text: '' };
      const text = await cluster.kubectl('logs', name).catch(() => '');
      return /^DONE$/mu.test(text) && { text };
    }).then(({ text }) => text);
  const uidOf = (name: string): Promise<string> =>
    cluster.kubectl('get', 'pod', name, '-o', 'jsonpath={.metadata.uid}');
  /** The groups of a pod and its containers, with their limits. */
  const limitsOf = async (name: string): Promise<ReadonlyMap<string, GroupMemory>> => {
    const pod = groups.ofPod(await uidOf(name)) ?? '';
    const found = new Map<string, GroupMemory>();
    for (const group of pod === '' ? [] : [pod, ...subGroupsOf(pod)]) found.set(group, await memoryOf(group));
    return found;
  };
  /** Fills the GPU's memory in a running pod. */
  const fill = (name: string): Promise<string> =>
    cluster.kubectl('exec', name, '--', 'sh', '-c', `${onMachine} ${FILL}`);
  return { agent, start, said, limitsOf, memoryOf, fill };
}

const subGroupsOf = (path: string): readonly string[] =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(path, entry.name)] : []));

/** Checks the answers of the probe: each process got memory up to the limit and no more. */
function held(t: Test, text: string, what: string): void {
  const answers = [...text.matchAll(/^memory (\d+) result (\d+)$/gmu)];
  t.ok(answers.length > 0, `${what}: the program answered`);
  for (const [line, mib] of answers) {
    t.ok(Number(mib) <= LIMIT_MIB && Number(mib) > 0, `${what}: ${line} within ${LIMIT_MIB} MiB`);
    t.match(line, /result 2$/, `${what}: then refused`);
  }
}

/** Whether the pod's group and one of a container have the limit. */
async function isLimited(limits: () => Promise<ReadonlyMap<string, GroupMemory>>): Promise<boolean> {
  const hard = [...(await limits()).values()].map((one) => (typeof one === 'string' ? null : one.hardBytes));
  return hard.filter((bytes) => bytes === LIMIT_MIB * 2 ** 20).length >= 2;
}

test('a pod has its limit before its first instruction, and keeps it through restarts', { skip }, async (t) => {
  const { agent, start, said, limitsOf, fill } = await setting(t);
  await start('first', FILL);
  held(t, await said('first'), 'at the start');
  t.ok(await isLimited(() => limitsOf('first')), 'pod and container have the limit');

  await agent.restart('SIGKILL');
  await until('the limit after a killed agent', () => isLimited(() => limitsOf('first')));
  await cluster.restartKubelet('SIGKILL');
  await until(
    `${NODE} to be ready`,
    async () => /\sReady\s/u.test(await cluster.kubectl('get', 'node', NODE)),
    120_000,
  );
  t.ok(await isLimited(() => limitsOf('first')), 'after a killed kubelet');
  const again = await fill('first');
  held(t, again, 'by exec afterwards');
  await cluster.removePods('first');
});

test('a restarted container has its limit in its new group, and the old group leaves nothing', { skip }, async (t) => {
  const { start, limitsOf } = await setting(t);
  await start('restarted', `${FILL}; echo DONE; exit 1`, { policy: 'Always' });
  await until(
    'a second run',
    async () =>
      Number(
        await cluster.kubectl('get', 'pod', 'restarted', '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'),
      ) > 0,
    180_000,
  );
  held(t, await cluster.kubectl('logs', 'restarted'), 'the second run');
  const limited = [...(await limitsOf('restarted')).values()].filter((one) => typeof one !== 'string');
  t.ok(limited.length <= 3, 'limits of the pod and of its containers that exist');
  await cluster.removePods('restarted');
});

test(
  'a hostile tenant, in its own control group namespace or privileged, stays within the limit',
  { skip },
  async (t) => {
    const { start, said, limitsOf } = await setting(t);
    for (const [name, command] of [
      // The runtime gives each container that is not privileged a control group namespace of its own.
      ['namespace', `cat /proc/self/cgroup; ${FILL}`],
      ['sub-group', `mkdir -p ${ROOT}/sub 2>/dev/null; echo $$ > ${ROOT}/sub/cgroup.procs 2>/dev/null; ${FILL}`],
      ['moves', `for g in / /.. /../..; do echo $$ > ${ROOT}$g/cgroup.procs; done 2>/dev/null; ${FILL}`],
      [
        'delegated',
        `mount -t cgroup2 none /mnt 2>/dev/null && mkdir -p /mnt/kubepods/podother && echo $$ > /mnt/kubepods/podother/cgroup.procs 2>/dev/null; ${FILL}`,
      ],
      ['rootless', `unshare -U -r sh -c '${FILL}' || (${FILL})`],
    ] as const) {
      await start(name, command, { privileged: name !== 'namespace' });
      const text = await said(name);
      if (name === 'namespace') t.match(text, /^0::\/$/mu, 'it sees its own group as the root');
      held(t, text, name);
      t.ok(await isLimited(() => limitsOf(name)), `${name}: the groups have the limit`);
      await cluster.removePods(name);
    }
  },
);

test('when a pod goes, the driver keeps nothing of it', { skip }, async (t) => {
  const { start, said, limitsOf, memoryOf } = await setting(t);
  await start('deleted', FILL);
  held(t, await said('deleted'), 'before');
  const groups = [...(await limitsOf('deleted')).keys()];
  t.ok(groups.length >= 2, 'the groups of pod and container');
  await cluster.removePods('deleted');
  for (const group of groups)
    await until(`${group} to be gone`, async () => (await memoryOf(group)) === 'gone', 60_000);
});

test('an agent that is killed while pods start leaves none without its limit', { skip }, async (t) => {
  const { agent, start, said, limitsOf, fill } = await setting(t);
  // The steps of a start take tenths of a second, so the kills fall into different ones.
  for (const [index, delayMs] of [100, 400, 1_000].entries()) {
    const name = `killed-${index}`;
    await start(name, `sleep 2; ${FILL}`);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await agent.restart('SIGKILL');
    // A pod that was refused in the moment without an agent does not run; what runs is limited.
    if ((await said(name)) === '') continue;
    await until(`the limit of ${name}`, () => isLimited(() => limitsOf(name)));
    const exec = await fill(name);
    held(t, exec, name);
  }
  await cluster.kubectl('delete', 'pods', '--all', '--force', '--grace-period=0', '--wait=true', '--timeout=120s');
});
