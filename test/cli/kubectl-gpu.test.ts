import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import tap, { test, type Test } from 'tap';
import { parse } from 'yaml';
import type { UseRecord } from '../../src/agent/node/use-record.js';
import { Journal } from '../../src/agent/node/journal.js';
import type { SliceSnapshot, SuspensionSnapshot } from '../../src/agent/node/view.js';
import { NODE_INVENTORY_KEY } from '../../src/gpu/annotations.js';
import { encodeInventory } from '../../src/gpu/node-inventory.js';
import { TokenAccess } from '../../src/http/token-access.js';
import { systemClock } from '../../src/host/clock.js';
import { packageFile } from '../../src/host/package-files.js';
import { READER_ACCOUNT } from '../../src/kube/agent-reader.js';
import { AGENT_AUDIENCE } from '../../src/kube/token-review.js';
import { claimingPod, claimObject } from '../console/quota-objects.js';
import { deviceName } from '../../src/gpu/claims/names.js';
import { allocation, GIB, gpu, node, served, slice, topologyOf, viewOf } from '../agent/display/fixture.js';
import { readAccountToken } from '../harness/api-server/account-token.js';
import { listening } from '../console/prometheus-server.js';
import { groupObject, serveQuota } from '../console/quota-objects.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { DRA_TYPES } from '../harness/api-server/dra-types.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { eventually } from '../harness/eventually.js';
import { KUBECTL_GPU } from '../harness/programs.js';
import { noPseudoTerminal, PseudoTerminal } from '../harness/pseudo-terminal.js';
import { scratchDirectory } from '../scratch.js';
import { Commands, type Ended } from './commands.js';

const COMPLETE_MAIN = fileURLToPath(new URL('../../src/cli/kubectl-complete-gpu.js', import.meta.url));
const commands = new Commands();

/** Tests of `--watch` spend their time between two reads, so they run beside each other. */
const BESIDE_OTHERS = { buffered: true };

tap.jobs = 3;
tap.teardown(() => commands.close());

/** A cluster of two nodes with agents, one without an agent, and pods; `run` runs `kubectl gpu` as jane. */
/** What the agent of node1 keeps: an ended pod, and the pod train with two minutes. */
function keptUse(): Pick<UseRecord, 'hours' | 'minutes'> {
  const ended = { namespace: 'team', pod: '=ended', podUid: 'uid-ended', container: 'main', gpus: [1] };
  const train = { namespace: 'default', pod: 'train', podUid: 'uid-train', container: 'main', gpus: [0] };
  const minute = (atMs: number, share: number, priority: number) => ({
    ...{ atMs, seconds: 60, used: 15, memoryBytes: GIB, throttled: { share, priority, lending: 0 } },
  });
  return {
    hours: async (fromMs) => ({
      fromMs: fromMs + 7_200_000,
      containers: [
        { ...ended, quotaGroup: 'vision', allocatedSeconds: 36_000, usedSeconds: 9_000, throttledSeconds: 0 },
        { ...train, allocatedSeconds: 1_800, usedSeconds: 1_800, throttledSeconds: 60 },
      ],
    }),
    minutes: (namespace, pod) =>
      namespace !== 'default' || pod !== 'train'
        ? []
        : [
            {
              ...{ owner: train, gpuUuid: gpu(0).uuid },
              minutes: [
                minute(Date.parse('2026-11-28T10:00:00Z'), 30, 0),
                minute(Date.parse('2026-11-28T10:01:00Z'), 0, 45),
              ],
            },
          ],
  };
}

async function testCluster(t: Test) {
  const directory = await scratchDirectory(t);
  const server = new ApiServer({ tokens: new Map([['secret', 'jane']]) });
  await server.start();
  t.teardown(() => server.stop());

  const gpus = [
    gpu(0, { usedPercent: 60, usedMemoryBytes: 3 * GIB, memoryEnforcer: { by: 'driver', backend: 'misc' } }),
    gpu(1, { memoryEnforcer: { by: 'library', reason: 'control groups of version 1' } }),
  ];
  const use = { usedPercent: 22, usedMemoryBytes: GIB, pids: [4711] };
  const train = allocation('train', [slice(gpus[0]!, use)]);
  let trainNow = train;
  /** Limits that the agent has in force for the pod train from now on. */
  const enforce = (limits: Partial<SliceSnapshot>): void => {
    trainNow = allocation('train', [slice(gpus[0]!, { ...use, ...limits })]);
  };
  const suspend = (suspension: SuspensionSnapshot | undefined): void => {
    trainNow = { ...train, ...(suspension === undefined ? {} : { suspension }) };
  };
  const journal = new Journal(systemClock);
  journal.note({ level: 'info', kind: 'Started', message: 'default/train/main: 30 cores', allocation: train.id });
  const ended = { podUid: 'uid-ended', namespace: 'team', pod: '=ended', container: 'main' };
  journal.note({ level: 'info', kind: 'Freed', message: 'its GPUs are released', allocation: train.id, owner: ended });
  const access = new TokenAccess(async (token) => {
    const claims = readAccountToken(token);
    return claims?.aud.includes(AGENT_AUDIENCE) === true ? { kind: 'allowed' } : { kind: 'unknown' };
  }, systemClock);
  const doctor = async () => [{ check: 'driver', state: 'ok', what: 'sim 580', advice: null }];
  const agent = await served(
    t,
    viewOf(() => node({ gpus, allocations: [trainNow] })),
    { access, journal, doctor, use: keptUse() },
  );
  server.reach = ({ name }) => (name === 'agent-1' ? agent.server.port : null);

  const inventory = encodeInventory({
    topology: topologyOf('\tGPU0\nGPU0\tX\n'),
    gpus: [
      {
        gpu: { ...gpus[0]!, minor: 0 },
        healthy: true,
        reason: '',
        foreign: false,
        freeCores: 40,
        freeMemoryBytes: 8 * GIB,
      },
    ],
  });
  for (const name of ['node1', 'node2', 'node10', 'plain'])
    server.seed('nodes', {
      metadata: {
        name,
        labels: {
          pool: name === 'node10' ? 'b' : 'a',
          ...(name === 'plain' ? {} : { 'nvidia-device-enable': 'enable' }),
        },
        annotations: name === 'node2' ? { [NODE_INVENTORY_KEY]: inventory } : {},
      },
      status: { allocatable: name === 'plain' ? { cpu: '8' } : { 'tencent.com/vcuda-core': '200', cpu: '8' } },
    });
  for (const at of [1, 2])
    server.seed('pods', {
      metadata: {
        name: `agent-${at}`,
        namespace: 'kube-system',
        labels: { 'app.kubernetes.io/name': 'gpu-manager' },
        ownerReferences: [{ kind: 'DaemonSet', name: 'gpu-manager', uid: 'daemonset', controller: true }],
      },
      spec: {
        nodeName: `node${at}`,
        serviceAccountName: 'gpu-manager',
        containers: [{ name: 'gpu-manager', args: ['run', '--token-review=true'] }],
      },
      status: { phase: 'Running', containerStatuses: [{ name: 'gpu-manager', ready: true, state: { running: {} } }] },
    });
  server.seed('serviceaccounts', { metadata: { name: READER_ACCOUNT, namespace: 'kube-system' } });
  const pod = (name: string, changes: { nodeName?: string; status?: object; namespace?: string; labels?: object }) =>
    server.seed('pods', {
      metadata: {
        name,
        namespace: changes.namespace ?? 'default',
        uid: `uid-${name}`,
        ...(changes.labels === undefined ? {} : { labels: changes.labels as Record<string, string> }),
      },
      spec: {
        ...(changes.nodeName === undefined ? {} : { nodeName: changes.nodeName }),
        containers: ['main', 'side'].map((container) => ({
          name: container,
          resources:
            container === 'main' ? { limits: { 'tencent.com/vcuda-core': 30, 'tencent.com/vcuda-memory': 16 } } : {},
        })),
      },
      status: { phase: 'Running', ...changes.status },
    });
  pod('train', { nodeName: 'node1', labels: { app: 'train' } });
  pod('dark', { nodeName: 'node2' });
  pod('waiting', {
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes have 30 free cores' }],
    },
  });
  pod('other', { nodeName: 'node1', namespace: 'team' });
  server.seed('pods', { metadata: { name: 'web', namespace: 'default' }, spec: { containers: [{ name: 'web' }] } });
  const event = (name: string, reason: string, component: string, message: string, object = `${name}.${reason}`) =>
    server.seed('events', {
      metadata: { name: object.toLowerCase(), namespace: 'default' },
      involvedObject: { kind: 'Pod', name, namespace: 'default', uid: `uid-${name}` },
      type: 'Normal',
      reason,
      message,
      source: { component },
      lastTimestamp: new Date().toISOString(),
    });
  event('train', 'GPUStarted', 'gpu-manager', '30 cores of GPU 0');
  event('train', 'Pulled', 'kubelet', 'image pulled');

  await writeFile(join(directory, 'config'), kubeconfig(server, { token: 'secret' }));
  const env = { PATH: process.env.PATH ?? '', HOME: directory, KUBECONFIG: join(directory, 'config') };
  const start = (...args: readonly string[]) =>
    spawn(process.execPath, [KUBECTL_GPU, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const run = (...args: readonly string[]): Promise<Ended> =>
    commands.run({ program: 'kubectl-gpu', args, env, directory, input: '' });
  /** In a process of its own, whose output programs that it starts share. */
  const runAlone = async (...args: readonly string[]): Promise<Ended> => {
    const child = start(...args);
    const [out, err, code] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      new Promise<number | null>((resolve) => child.once('close', resolve)),
    ]);
    return { code, out, err };
  };
  return { server, directory, run, runAlone, start, event, enforce, suspend, env };
}

test('kubectl gpu top -i is a full screen of all nodes', { skip: noPseudoTerminal }, async (t) => {
  const { runAlone, env } = await testCluster(t);
  t.match(await runAlone('top', '-i'), { code: 2, err: /--interactive needs a terminal/ });
  const top = new PseudoTerminal([process.execPath, KUBECTL_GPU, 'top', '-i'], {
    rows: 24,
    columns: 100,
    environment: env,
  });
  t.teardown(() => top.close());
  await top.until('the container', () => /^default\/train\/main +node1 +0 +22\/30 % +1\.0\/4\.0 GiB/m.test(top.text));
  t.match(top.text, /^3 nodes {2}2 GPUs/);
  t.match(top.text, /^! node2: the API server does not reach the agent/m);
  t.match(top.text, /^node1 +2 GPUs +30 % [█░]+ 3\.0\/32\.0 GiB/m);
  top.press('j\r');
  await top.until('its processes', () =>
    top.text.replaceAll('\n', '').includes('kubectl --namespace kube-system exec -it agent-1 -- gpu-manager top'),
  );
  t.match(top.text, /^ +4711 /m);
  top.press('q');
  t.match(await top.ended, { code: 0, echo: true });
});

test('kubectl gpu top says how many agents did not answer, and fails if nothing could be read', async (t) => {
  const { run } = await testCluster(t);
  t.match(await run('top'), { code: 0, out: /default\/train\/main/, err: /^2 of 3 agents did not answer\n/ });
  const blind = await run('top', 'node2', 'node10');
  t.match(blind, { code: 1, out: '', err: /^2 of 2 agents did not answer\n/ });
  t.notMatch(blind.err, /has a slice/);
});

test('kubectl gpu shows nodes and pods of a cluster, with the figures of the agents that answer', async (t) => {
  const { run, runAlone } = await testCluster(t);
  const nodes = await run('nodes');
  t.match(nodes, {
    code: 0,
    err: /node2: the API server does not reach the agent kube-system\/agent-2.*\n.*node10: no agent in the namespace kube-system runs/,
  });
  t.match(
    nodes.out,
    /^NAME +STATUS +GPUS +MODEL +CORES +MEMORY +USED +USE +SLICES\nnode1 +Ready +2 +NVIDIA H200 +30\/200 +4\.0\/32\.0 GiB +3\.0 GiB +30 % +1\n/,
  );
  t.match(
    nodes.out,
    /\nnode2 +Unknown +1 +NVIDIA H200 +60\/100 +8\.0\/16\.0 GiB +- +- +-\nnode10 +NoAgent +2 +- +- +-/,
  );
  t.notMatch(nodes.out, /plain/);
  t.match(JSON.parse((await run('nodes', '-l', 'pool=a', '-o', 'json')).out), [
    { name: 'node1', cores: 200, allocatedCores: 30, usedPercent: 30, agent: 'kube-system/agent-1', problem: null },
    { name: 'node2', problem: /connection refused/ },
  ]);
  t.match(
    (await run('nodes', 'node1', '-o', 'wide')).out,
    /AGENT +VERSION +DRIVER +UNHEALTHY\n.*kube-system\/agent-1 +1\.2\.3 +580\.95\.05 +0/,
  );
  t.match(await runAlone('nodes', 'plain'), { code: 1, err: 'kubectl gpu: no node with GPUs is called plain\n' });

  const pods = await run('pods');
  t.match(
    pods.out,
    /^NAME +STATUS +NODE +GPU +CORES +MEMORY +LAST USED +AGE\ndark +Running +node2 +- +-\/30 +-\/4\.0 GiB .*\ntrain +Running +node1 +0 +22\/30 +1\.0\/4\.0 GiB .*\nwaiting +Unschedulable +- +- +-\/30/,
  );
  t.notMatch(pods.out, /web|other/);
  t.match((await run('pods', '-A')).out, /^NAMESPACE +NAME .*\n.*\nteam +other +Running/s);
  t.match((await run('pods', 'waiting', '-o', 'wide')).out, /0\/3 nodes have 30 free cores/);
  t.match(JSON.parse((await run('pods', '-l', 'app=train', '-o', 'json')).out), [
    { name: 'train', node: 'node1', gpus: [0], usedCores: 22, cores: 30, usedMemoryBytes: GIB, processes: 1 },
  ]);

  t.match(
    (await run('top', 'node1')).out,
    /^NODE +GPU .*\nnode1 +0 +default\/train\/main +22\/30 +1\.0\/4\.0 GiB +0\.0 s +1\n$/,
  );

  const described = await run('describe', 'pod/train');
  t.match(described.out, /^Name: +train\nNamespace: +default\nNode: +node1\n/);
  t.match(
    described.out,
    /Container main: asks for 30 cores, 4\.0 GiB\n {2}GPU +CORES.*\n {2}0 +22\/30 .*4711 +GPU-00000000/,
  );
  t.match(described.out, /\nEvents:\n.*\n.*GPUStarted +30 cores of GPU 0\n.*Pulled/);
  t.match(described.out, /Events of the agent:\n.*\n.*Started +default\/train\/main: 30 cores/);
  t.match(
    (await run('describe', 'waiting')).out,
    /Why: +0\/3 nodes have 30 free cores\n\nContainer main:.*\n {2}no GPU yet/,
  );
  t.match((await run('describe', 'dark')).out, /No figures: +the API server does not reach/);
  t.match(await run('describe', 'nobody'), { code: 1, err: /no pod nobody in namespace default \(-n for another\)/ });
  t.match(await run('describe', '=ended', '-n', 'team'), {
    code: 0,
    out: /^Name: +=ended\nNamespace: +team\nStatus: +gone.*\n\nContainers.*\n.*\nmain +node1 +1 +10 +2\.5 .*\n\n.*\n.*\n.*node1 +Freed +its GPUs are released\n$/,
  });
  t.match(await run('describe', '=ended'), { code: 1, err: /no agent remembers one/ }, 'only of the namespace');

  const nodeDescribed = await run('describe', 'node/node1');
  t.match(nodeDescribed.out, /^Name: +node1\n/);
  t.match(nodeDescribed.out, /MEMORY LIMITS BY +COMPUTE SHARES BY/);
  t.match(nodeDescribed.out, /\n0 .* driver \(misc\) +library +GPU-00000000/);
  t.match(nodeDescribed.out, /\nGPU 1: memory limits by the library: control groups of version 1\n/);
  t.match(JSON.parse((await run('describe', 'node/node1', '-o', 'json')).out), {
    gpus: [
      { index: 0, memoryLimitsBy: 'driver', memoryLimitsReason: null, computeSharesBy: 'library' },
      { index: 1, memoryLimitsBy: 'library', memoryLimitsReason: 'control groups of version 1' },
    ],
  });
  t.match(await run('describe', 'node/nowhere'), { code: 1, err: /no node nowhere/ });

  const events = await run('events');
  t.match(events.out, /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*GPUStarted +pod\/train +30 cores of GPU 0\n$/);
  t.match(await run('events', '-n', 'team'), { code: 0, out: '', err: /no events about GPUs/ });
});

test("kubectl gpu shows what pods hold by claims of this driver, and no other driver's", async (t) => {
  const { run, server } = await testCluster(t);
  server.define(...DRA_TYPES);
  const claimed = (name: string, claim: string, more: { nodeName?: string; status?: object } = {}) => {
    const { nodeName, status = { phase: 'Running' } } = more;
    const pod = claimingPod(
      { metadata: { name, namespace: 'default', uid: `default-${name}` }, spec: {}, status },
      claim,
    );
    server.seed('pods', nodeName === undefined ? pod : { ...pod, spec: { ...(pod.spec as object), nodeName } });
  };
  const whole = claimObject('whole', { cores: 100, memoryGib: 16, on: { node: 'node1', gpu: 0 }, pods: ['holder'] });
  const { uuid } = gpu(1);
  server.seed(
    'resourceclaims',
    JSON.parse(JSON.stringify(whole).replace(deviceName('GPU-node1-0'), deviceName(uuid))) as typeof whole,
  );
  server.seed('resourceclaims', claimObject('big', { cores: 60 }));
  server.seed(
    'resourceclaims',
    claimObject('nic', { deviceClass: 'nic.example.com', driver: 'nic.example.com', on: { node: 'node1', gpu: 0 } }),
  );
  claimed('holder', 'whole', { nodeName: 'node1' });
  claimed('networked', 'nic', { nodeName: 'node1' });
  claimed('hopeful', 'big', {
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: 'cannot allocate' }] },
  });

  const pods = await run('pods');
  t.match(pods.out, /\nholder +Running +node1 +1 +-\/100 +-\/16\.0 GiB/);
  t.match(pods.out, /\nhopeful +Unschedulable +- +- +-\/60 +-\/4\.0 GiB/);
  t.notMatch(pods.out, /networked/);
  t.match(
    (await run('describe', 'holder')).out,
    /\nClaim whole: reserved, asks for 100 cores, 16\.0 GiB \(vgpu\.tencent\.com\)\n {2}gpu: 100 cores, 16\.0 GiB of GPU 1\n/,
  );
  t.match((await run('describe', 'networked')).out, /This pod asks for no GPU/);
  t.match(JSON.parse((await run('describe', 'hopeful', '-o', 'json')).out), {
    claims: [{ name: 'big', state: 'waiting', why: 'cannot allocate' }],
  });

  const claims = await run('claims', '-o', 'wide');
  t.match(
    claims.out,
    /^NAME +STATE +NODE +GPU +CORES +MEMORY +PODS +AGE .*WHY\nbig +waiting +- +- +60 +4\.0 GiB +- .*pod hopeful: cannot allocate\nwhole +reserved +node1 +\? +100 +16\.0 GiB +holder /,
  );
  t.notMatch(claims.out, /nic/);
  t.match(await run('claims', 'nic'), { code: 1, err: /no claim for GPUs is called nic in namespace default/ });
  t.match(JSON.parse((await run('claims', 'whole', '-o', 'json')).out), [{ devices: [{ node: 'node1', cores: 100 }] }]);

  server.inject({ resource: 'resourceclaims' }, { do: 'answer', code: 403, reason: 'Forbidden' });
  t.match(await run('pods'), {
    code: 0,
    out: /\ntrain /,
    err: /claims: the resource claims cannot be listed.*not shown/,
  });
  t.notMatch((await run('describe', 'holder')).out, /asks for no GPU/);
  t.match(await run('claims'), { code: 1, out: '', err: /the resource claims cannot be listed/ });
});

test('kubectl gpu explain says why a pod, a claim, a workload or a pod group waits, and what would end it', async (t) => {
  const { run, server } = await testCluster(t);
  server.define(...DRA_TYPES);
  const waiting = await run('explain', 'waiting');
  t.match(waiting, {
    code: 0,
    out: /^scheduler: 0\/3 nodes have 30 free cores\npod default\/waiting: 1 container needs a GPU, \d of 4 nodes fit\nNODE +FITS/,
  });
  const large = { 'tencent.com/vcuda-core': 100 };
  const template = {
    metadata: { labels: { 'scheduling.x-k8s.io/pod-group': 'ranks' } },
    spec: {
      nodeSelector: { pool: 'a' },
      containers: [{ name: 'main', resources: { limits: large, requests: large } }],
    },
  };
  server.seed('pods', {
    metadata: { ...template.metadata, name: 'rank-0', namespace: 'default', uid: 'rank-0' },
    spec: { ...template.spec, priority: 5 },
    status: { phase: 'Pending' },
  });
  for (const [name, node] of [
    ['first', 'node1'],
    ['second', 'node1'],
    ['third', 'node2'],
  ])
    server.seed('pods', {
      metadata: { name: name, namespace: 'team', uid: name },
      spec: { nodeName: node as string, containers: [{ name: 'main', resources: { limits: large, requests: large } }] },
      status: { phase: 'Running' },
    });
  const gang = await run('explain', 'podgroup/ranks');
  t.match(gang, { code: 1, out: /pod group ranks: 0 of 1 pods have a node/ });
  t.match(gang.out, /nearest fit: node node\d, when \S+ ends \(no end of them is known; .*may evict/);
  server.seed('resourceclaims', claimObject('big', { cores: 100 }));
  t.match(await run('explain', 'claim/big'), { code: 1, err: /no waiting pod uses claim default\/big/ });
  const user = {
    metadata: { name: 'user', namespace: 'default', uid: 'default-user' },
    spec: {},
    status: { phase: 'Pending' },
  };
  server.seed('pods', claimingPod(user, 'big'));
  t.match(JSON.parse((await run('explain', 'claim/big', '-o', 'json')).out), {
    name: 'user',
    asksForGpus: true,
    nodes: [{}, {}, {}, {}],
  });
  t.match(await run('explain', 'web'), { out: /^pod default\/web: asks for no GPU, so GPUs do not hold it back/ });
  server.seed('deployments', { metadata: { name: 'serve', namespace: 'default' }, spec: { replicas: 1, template } });
  t.match((await run('explain', 'deploy/serve')).out, /^a pod of Deployment default\/serve: 1 container needs a GPU/);
  t.match(await run('explain', 'nobody'), { code: 1, err: /no pod nobody in namespace default/ });
  t.match(await run('explain', 'a/b/c'), { code: 2, err: /expected a pod, or kind\/name/ });
  t.match(await run('explain', 'crontab/b'), { code: 2, err: /"crontab" is not known: name a pod, claim/ });
});

test('kubectl gpu limits set annotates a pod within its allocation', async (t) => {
  const { run, server } = await testCluster(t);
  const annotations = () => server.read('pods', 'default', 'train')?.metadata.annotations ?? {};
  t.match((await run('limits', 'get')).out, /train +main +0 +30 +- +4\.0 GiB +1\.0 GiB +normal +-\n/);
  t.match(await run('limits', 'set', 'train', '--memory', '2GiB', '--share', '20', '--soft', '80', '--wait', '0'), {
    code: 0,
    out: 'pod/train: tencent.com/vcuda-memory-limit=2Gi\npod/train: tencent.com/vcuda-share-limit=20\npod/train: tencent.com/vcuda-core-limit=80\n',
  });
  t.match(annotations(), { 'tencent.com/vcuda-memory-limit': '2Gi', 'tencent.com/vcuda-share-limit': '20' });
  t.match((await run('limits', 'get', 'train')).out, /memory=2Gi share=20 soft=80/);
  t.match(
    (await run('limits', 'set', 'train', '-c', 'main', '--memory', '12', '--wait', '0')).out,
    /vcuda-memory-limit=main=12\n/,
  );
  for (const [args, message] of [
    [['--memory', '8Gi'], /container main: 8Gi is more than its 4\.0 GiB \(16 blocks\)/],
    [['--memory', '512Mi'], /512Mi is less than the 1\.0 GiB that it uses now/],
    [['--cores', '40'], /a share of 40 is more than its 30 cores/],
    [['--soft', '10'], /a soft limit of 10 is below its share of 20/],
    [['--cores', '20', '--share', '20'], /'--share <cores>' cannot be used with option '--cores <cores>'/],
    [['-c', 'side', '--share', '10'], /has no container side with a GPU; there are main/],
  ] as const)
    t.match(await run('limits', 'set', 'train', ...args), { code: 2, err: message }, args.join(' '));
  t.match(await run('limits', 'set', 'web', '--share', '10'), { code: 2, err: /pod web asks for no GPU/ });
  t.match(annotations(), { 'tencent.com/vcuda-memory-limit': 'main=12' }, 'refused limits change nothing');
  t.match((await run('limits', 'release', 'train')).out, /vcuda-memory-limit removed/);
  t.same(annotations(), {});
  server.edit('pods', 'default', 'train', (object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { 'tencent.com/vcuda-gpus': '2' } },
  }));
  t.match(await run('limits', 'set', 'train', '--cores', '20', '--wait', '0'), {
    code: 2,
    err: /a share of 20 is more than its 15 cores of a GPU/,
  });
  t.match(await run('limits', 'set', 'train', '--cores', '15', '--wait', '0'), {
    code: 0,
    out: /vcuda-share-limit=15/,
  });
});

test('kubectl gpu limits set says whether the agent applied the limits, refused them or has not seen them', async (t) => {
  const { run, server, event, enforce } = await testCluster(t);
  const annotations = () => server.read('pods', 'default', 'train')?.metadata.annotations ?? {};
  t.match(await run('limits', 'set', 'train', '--cores', '20', '--dry-run'), {
    code: 0,
    out: 'pod/train: tencent.com/vcuda-share-limit=20 (dry run)\n',
  });
  t.same(annotations(), {}, 'a dry run writes nothing');

  event('train', 'GPULimitRefused', 'gpu-manager', 'an earlier refusal', 'refusal');
  t.match(await run('limits', 'set', 'train', '--cores', '20', '--wait', '0.1'), {
    code: 1,
    out: /\npod\/train: not seen after 0\.1 s: its agent has other limits in force, and refused before: an earlier refusal\n$/,
  });
  t.match(annotations(), { 'tencent.com/vcuda-share-limit': '20' });

  enforce({ share: 20, softLimit: 60, memoryLimitBytes: 2 * GIB, priority: 'low' });
  const all = ['--cores', '20', '--soft', '60', '--memory', '8', '--priority', 'low'];
  t.match(await run('limits', 'set', 'train', ...all), { code: 0, out: /\npod\/train: applied\n$/ });
  t.match(JSON.parse((await run('limits', 'set', 'train', '--cores', '20', '-o', 'json')).out), {
    outcome: { state: 'applied' },
  });

  event('train', 'GPULimitRefused', 'gpu-manager', 'main: 1800 MiB are in use', 'refusal.2');
  t.match(await run('limits', 'set', 'train', ...all, '--memory', '6', '--wait', '0.1'), { code: 1, out: /not seen/ });
  t.match(
    await run('limits', 'set', 'train', ...all, '--memory', '6'),
    { code: 1, out: /\npod\/train: refused: main: 1800 MiB are in use \(kubectl gpu limits release/ },
    'the same again, which the agent refused before',
  );
  t.match(await run('limits', 'set', 'waiting', '--cores', '20'), {
    code: 0,
    out: /applies when its containers start/,
  });
  t.match(await run('limits', 'set', 'dark', '--cores', '20', '--wait', '0.1'), {
    code: 1,
    out: /not seen after 0\.1 s: the API server does not reach the agent/,
  });
});

test('kubectl gpu suspend asks by an annotation, and says what the agent did; pods and describe show it', async (t) => {
  const { run, server, event, suspend } = await testCluster(t);
  const annotation = () => server.read('pods', 'default', 'train')?.metadata.annotations?.['tencent.com/vcuda-suspend'];
  t.match(await run('suspend', 'train', '--wait', '0.1'), { code: 1, out: /\npod\/train: not seen after 0\.1 s/ });
  t.match(annotation(), /^suspended@2.*Z$/);
  const since = Date.now() - 60_000;
  suspend({ step: 'suspended', sinceMs: since, by: 'pod', held: false, wantsSinceMs: null, hostBytes: 3 * GIB });
  t.match(await run('suspend', 'train', '-c', 'main'), {
    code: 0,
    out: /\npod\/train: main is suspended by its pod, since 1 m.*: 3\.0 GiB on the host\n$/,
  });
  t.match(annotation(), /^main=suspended@/);
  t.match((await run('pods', 'train')).out, /train +Running, suspended /);
  t.match((await run('describe', 'train')).out, /suspended by its pod, since 1 m.*: 3\.0 GiB on the host\n/);
  t.match(await run('suspend', 'train', '--hold', '--wait', '0.1'), { code: 1, out: /vcuda-suspend=held@/ });
  suspend(undefined);
  t.match(await run('resume', 'train'), { code: 0, out: /vcuda-suspend=running@.*\npod\/train: main runs\n$/ });
  const refused = run('suspend', 'train');
  await eventually(() => annotation()?.startsWith('suspended@') === true, 'it has asked');
  event('train', 'GPUSuspendRefused', 'gpu-manager', 'main: it has several GPUs', 'suspend');
  t.match(await refused, { code: 1, out: /\npod\/train: refused: main: it has several GPUs\n$/ });
  t.match(await run('suspend', 'web'), { code: 2, err: /pod web asks for no GPU/ });
  t.match(await run('resume', 'waiting'), { code: 0, out: /nothing to do: it has no node yet/ });
});

test('kubectl gpu limits resize asks for more than a pod requested', async (t) => {
  const { run, server } = await testCluster(t);
  const annotations = () => server.read('pods', 'default', 'train')?.metadata.annotations ?? {};
  t.match(await run('limits', 'resize', 'train', '--cores', '60', '--memory', '6GiB'), {
    code: 0,
    out: 'pod/train: tencent.com/vcuda-core-resize=60\npod/train: tencent.com/vcuda-memory-resize=6GiB\n',
  });
  t.match((await run('limits', 'resize', 'train', '-c', 'main', '--cores', '70')).out, /vcuda-core-resize=main=70\n/);
  for (const [args, message] of [
    [['--cores', '20'], /container main: 20 cores are less than the 30 requested; kubectl gpu limits set lowers/],
    [['--memory', '8'], /8 is less than the 16 blocks requested/],
    [['--cores', '120'], /a number of cores from 1 to 100/],
    [[], /give --cores, --memory or both, or --request alone/],
    [['--request', '--cores', '60'], /give --cores, --memory or both, or --request alone/],
  ] as const)
    t.match(await run('limits', 'resize', 'train', ...args), { code: 2, err: message }, args.join(' '));
  t.match(annotations(), { 'tencent.com/vcuda-core-resize': 'main=70', 'tencent.com/vcuda-memory-resize': '6GiB' });
  t.match((await run('limits', 'resize', 'train', '--request')).out, /vcuda-core-resize removed/);
  t.same(annotations(), {});
});

test('kubectl gpu doctor says what the cluster knows about a node, and what its agent finds', async (t) => {
  const { run } = await testCluster(t);
  const good = await run('doctor', 'node1');
  t.equal(good.code, 0);
  t.match(
    good.out,
    /^no check failed, 5 ok\n\nok +label .*\nok +agent pod +kube-system\/agent-1 is ready\nok +resources +tencent.com\/vcuda-core: 200\nok +access .*\nok +driver +sim 580\n$/,
  );
  t.match(await run('doctor', 'node/node2'), {
    code: 1,
    out: /FAILED +access +the API server does not reach the agent.*\n +-> docs\/reference\/kubectl\.md.*\nskipped +checks/,
  });
  t.match(await run('doctor', 'node10'), { code: 1, out: /FAILED +agent pod +no agent runs on this node/ });
  t.match(await run('doctor', 'nowhere'), { code: 2, err: /no node nowhere: kubectl gpu nodes lists/ });
});

test('kubectl gpu --watch prints rows as they change', BESIDE_OTHERS, async (t) => {
  const { server, start } = await testCluster(t);
  const child = start('pods', '-w');
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  await eventually(() => /waiting +Unschedulable/.test(out), 'the first rows');
  server.edit('pods', 'default', 'waiting', (object) => ({
    ...object,
    status: { phase: 'Failed', reason: 'Evicted' },
  }));
  await eventually(() => /\nwaiting +Evicted[^\n]*\n$/.test(out), 'the changed row');
  t.equal(out.match(/dark/g)?.length, 1, 'unchanged rows are not repeated');
  child.kill('SIGINT');
  t.equal(await new Promise((resolve) => child.once('close', resolve)), 0);
});

test(
  'kubectl gpu events --watch prints each event once, also where two objects tell the same',
  BESIDE_OTHERS,
  async (t) => {
    const { start, event } = await testCluster(t);
    event('dark', 'GPULimited', 'gpu-manager', 'the same', 'dark.1');
    const child = start('events', '-w');
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    await eventually(() => /GPULimited/.test(out), 'the first events');
    event('dark', 'GPULimited', 'gpu-manager', 'the same', 'dark.2');
    await eventually(() => (out.match(/GPULimited/g)?.length ?? 0) >= 2, 'the second event');
    event('dark', 'GPUReleased', 'gpu-manager', 'later');
    await eventually(() => /GPUReleased/.test(out), 'the last event');
    t.equal(out.match(/GPULimited/g)?.length, 2, out);
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('close', resolve));
  },
);

test('kubectl gpu --watch goes on after failed reads, says so once, and ends at a signal', BESIDE_OTHERS, async (t) => {
  const { server, start } = await testCluster(t);
  const child = start('pods', '-o', 'json', '--watch');
  const texts = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (texts.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (texts.err += chunk.toString()));
  await eventually(() => texts.out.includes('"waiting"'), 'the first rows');
  const fault = server.inject({ resource: 'pods' }, { do: 'answer', code: 500 });
  await eventually(() => fault.hits >= 2, 'reads that fail');
  t.equal(texts.err.match(/reading failed, trying again every 2 s: /g)?.length, 1, texts.err);
  fault.remove();
  server.edit('pods', 'default', 'waiting', (object) => ({
    ...object,
    status: { phase: 'Failed', reason: 'Evicted' },
  }));
  await eventually(() => texts.out.includes('"Evicted"'), 'the changed row');
  t.match(texts.err, /\nreading works again\n$/);
  child.kill('SIGTERM');
  t.equal(await new Promise((resolve) => child.once('close', resolve)), 0);
});

test('every list of kubectl gpu takes labels, namespaces and formats; documents are the same in JSON and YAML', async (t) => {
  const { run } = await testCluster(t);
  for (const command of ['top', 'nodes', 'pods', 'limits get', 'events']) {
    const words = command.split(' ');
    for (const flags of [['-A'], ['-n', 'default'], ['-A', '-l', 'app=train'], ['-A', '-o', 'wide']]) {
      const { code, out, err } = await run(...words, ...flags);
      t.equal(code, 0, `${command} ${flags.join(' ')}: ${err}`);
      t.notMatch(out, /undefined|NaN|null|\d\.\d{3,}/, `${command} ${flags.join(' ')}`);
    }
    const [json, yaml] = await Promise.all(['json', 'yaml'].map((format) => run(...words, '-A', '-o', format)));
    t.same(JSON.parse(json?.out ?? ''), parse(yaml?.out ?? ''), command);
  }
  const identity = { gpuIndex: 0, gpuUuid: /^GPU-/ };
  for (const command of [['top'], ['limits', 'get', 'train']])
    t.match(JSON.parse((await run(...command, '-o', 'json')).out), [identity], command.join(' '));
  t.match((await run('top', '-n', 'default')).out, /default\/train\/main/);
  t.match(await run('top', '-n', 'team'), { out: '', err: /no container of namespace team has a slice/ });
  t.match((await run('top', '-n', 'team', '-A')).out, /default\/train\/main/);
  t.match((await run('events', '-l', 'app=train')).out, /GPUStarted/);
  t.match(await run('events', '-l', 'app=other'), { out: '', err: /no events about GPUs/ });
  for (const command of ['describe train', 'doctor node1']) {
    const words = command.split(' ');
    const [json, yaml] = await Promise.all(['json', 'yaml'].map((format) => run(...words, '-o', format)));
    t.equal(typeof parse(yaml?.out ?? ''), 'object', command);
    t.same(
      Object.keys(JSON.parse(json?.out ?? '{}') as object),
      Object.keys(parse(yaml?.out ?? '') as object),
      command,
    );
  }
  t.match(JSON.parse((await run('limits', 'set', 'train', '--share', '20', '--wait', '0', '-o', 'json')).out), {
    namespace: 'default',
    pod: 'train',
    annotations: { 'tencent.com/vcuda-share-limit': '20' },
  });
  t.same(JSON.parse((await run('limits', 'release', 'train', '-o', 'json')).out), {
    namespace: 'default',
    pod: 'train',
    annotations: { 'tencent.com/vcuda-share-limit': null },
  });
});

test('lists of kubectl gpu print names alone, no headings, and rows sorted by a field', async (t) => {
  const { run } = await testCluster(t);
  t.equal((await run('nodes', '-o', 'name')).out, 'node/node1\nnode/node2\nnode/node10\n');
  t.equal((await run('pods', '-A', '-o', 'name')).out, 'pod/dark\npod/train\npod/waiting\npod/other\n');
  t.match((await run('pods', '--no-headers')).out, /^dark +Running .*\ntrain .*\nwaiting /);
  t.equal((await run('pods', '-o', 'name', '--sort-by', 'usedCores')).out, 'pod/train\npod/dark\npod/waiting\n');
  t.equal((await run('nodes', '-o', 'name', '--sort-by', '{.slices}')).out, 'node/node1\nnode/node2\nnode/node10\n');
  t.equal((await run('nodes', '-o', 'name', '--sort-by', '.cores')).out, 'node/node2\nnode/node1\nnode/node10\n');
  t.match(await run('pods', '--sort-by', 'size'), {
    code: 2,
    err: /--sort-by: no field "size"; there are namespace, name, status/,
  });
  t.match(await run('top', '-o', 'name'), { code: 2, err: /Expected table, wide, json, yaml/ });
});

test('a context, a kubeconfig and the namespace of a context are chosen as in kubectl', async (t) => {
  const { directory, run, server } = await testCluster(t);
  const file = join(directory, 'two');
  const config = JSON.parse(kubeconfig(server, { token: 'secret' })) as {
    contexts: object[];
    'current-context': string;
  };
  config.contexts.push({ name: 'team', context: { cluster: 'test', user: 'test', namespace: 'team' } });
  await writeFile(file, JSON.stringify(config));
  t.match((await run('pods', '--kubeconfig', file, '--context', 'team')).out, /\nother /);
  t.match(await run('pods', '--kubeconfig', file, '--context', 'none'), {
    code: 2,
    err: /no context "none"; there are test, team/,
  });
  t.match(await run('pods', '--kubeconfig', join(directory, 'absent')), { code: 2, err: /--kubeconfig: .*absent/ });
});

test('kubectl gpu idle lists the pods that hold a GPU without using it, and pods shows when each used it last', async (t) => {
  const { run, enforce } = await testCluster(t);
  const hour = 3_600_000;
  enforce({ lastUsedMs: Date.now() - 3 * hour - 60_000 });
  t.match(await run('idle'), {
    code: 0,
    out: /^NAME +NODE +GPU +CORES +MEMORY +LAST USED +IDLE FOR\ntrain +node1 +0 +30 +4\.0 GiB +3 h ago +3 h\n$/,
    err: /node2: the API server does not reach the agent/,
  });
  t.match((await run('pods', 'train')).out, /LAST USED.*\ntrain .* 3 h ago /);
  t.equal((await run('idle', '-o', 'name')).out, 'pod/train\n');
  t.match(await run('idle', '--for', '4h'), { code: 0, out: '', err: /no pod has left its GPUs unused for 4 h/ });
  enforce({ lastUsedMs: null });
  t.match((await run('pods', 'train')).out, / never /);
  enforce({ lastUsedMs: Date.now() });
  t.match((await run('pods', 'train')).out, / now /);
  t.match(await run('idle', '--for', '5s'), { code: 2, err: /Expected a duration of at least 1m/ });
});

test('kubectl gpu usage sums GPU-hours of running and ended pods, for people and for spreadsheets', async (t) => {
  const { run } = await testCluster(t);
  t.match(await run('usage'), {
    code: 0,
    out: /^NAMESPACE +ALLOCATED +USED +USE +PODS\nteam +10 +2\.5 +25 % +1\ndefault +0\.5 +0\.5 +100 % +1\n$/,
    err: /node2: .*\nfrom .*Z on: the agents know no more\n/,
  });
  t.match((await run('usage', '--by', 'group')).out, /vision +10 .*\n\(no group\) +0\.5/);
  t.match((await run('usage', '--by', 'pod', '-n', 'default', '-o', 'wide')).out, /\ndefault\/train .* node1:0\n$/);
  t.equal(
    (await run('usage', '--by', 'pod', '--since', '7d', '-o', 'csv')).out,
    'POD,ALLOCATED,USED,USE,PODS,GPUS\r\nteam/=ended,10,2.5,25 %,1,node1:1\r\ndefault/train,0.5,0.5,100 %,1,node1:0\r\n',
  );
  t.match(JSON.parse((await run('usage', '-o', 'json')).out), [
    { by: 'namespace', name: 'team', allocatedGpuHours: 10, usedGpuHours: 2.5, usedPart: 0.25, pods: 1 },
    {},
  ]);
});

test('kubectl gpu usage asks Prometheus where one is named, and no agent', async (t) => {
  const { run } = await testCluster(t);
  const url = await listening(t, (_request, response, at) => {
    const query = at.searchParams.get('query') ?? '';
    if (at.pathname.endsWith('/runtimeinfo')) return void response.end('{"data":{"storageRetention":"15d"}}');
    const value = query.includes('timestamp') ? Date.now() / 1_000 - 3_600 : query.includes('used_ratio') ? 1 : 4;
    const result = [{ metric: { namespace: 'team' }, value: [1, String(value)] }];
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result } }));
  });
  t.match(await run('usage', '--since', '30d', '--prometheus-url', url.href), {
    code: 0,
    out: 'NAMESPACE  ALLOCATED  USED  USE   PODS\nteam       4          1     25 %  4\n',
    err: /^from .*Z on: Prometheus knows no more; it keeps 15d\n$/,
  });
  t.match(await run('usage', '--prometheus-url', 'http://127.0.0.1:1'), { code: 1, err: /Prometheus does not answer/ });
  t.match(await run('usage', '--prometheus-ca-file', '/none'), { code: 2, err: /needs --prometheus-url/ });
});

test('kubectl gpu throttling says in percent how long a pod was held back, and why', async (t) => {
  const { run } = await testCluster(t);
  t.match(await run('throttling', 'train', '--since', '10m'), {
    code: 0,
    out: /^CONTAINER +GPU +OBSERVED +USED +THROTTLED +OWN SHARE +PRIORITY +LENDING\nmain +0 +120 s +25 % +63 % +25 % +38 % +0 %\n$/,
  });
  t.equal(
    (await run('throttling', 'train', '-o', 'csv')).out.split('\r\n')[2],
    '2026-11-28T10:01:00.000Z,main,0,60 s,25 %,75 %,0 %,75 %,0 %',
  );
  t.match(JSON.parse((await run('throttling', 'train', '-o', 'json')).out), [
    { container: 'main', gpu: 0, throttledSeconds: 75, ownShareSeconds: 30, prioritySeconds: 45, minutes: [{}, {}] },
  ]);
  t.match(await run('throttling', 'dark'), { code: 1, err: /node2: the API server does not reach the agent/ });
  t.match(await run('throttling', 'waiting'), { code: 1, err: /pod waiting has no node yet/ });
});

test('the commands of kubectl gpu in the guides of the second day work as they are written', async (t) => {
  const { run, server } = await testCluster(t);
  serveQuota(server);
  const guides = ['idle-gpus', 'node-maintenance', 'roll-back', 'cost'];
  const lines = guides.flatMap((name) =>
    [...readFileSync(packageFile(`docs/guides/${name}.md`), 'utf8').matchAll(/kubectl gpu ([a-z][^`#|>\n]*)/gu)].map(
      ([, line = '']) => line.trim(),
    ),
  );
  t.ok(lines.length > 12, `${lines.length} commands`);
  const words: Readonly<Record<string, string>> = { NODE: 'node1', POD: 'train', NAMESPACE: 'default' };
  for (const line of new Set(lines)) {
    // They need a Prometheus, a complete node, and an agent that may suspend.
    if (/--prometheus-url|^doctor|^suspend|^resume/u.test(line)) continue;
    const args = line.split(/\s+/u).map((word) => words[word] ?? word);
    // No agent sets the limits here.
    const { code, err } = await run(...args, ...(args[0] === 'limits' ? ['--wait', '0'] : []));
    t.ok(code === 0 || (args[0] === 'explain' && code === 1), `${line}: ${code} ${err}`);
  }
});

test('kubectl gpu quota creates groups and shows the tree; edit hands over to kubectl', async (t) => {
  const { run, runAlone, directory } = await testCluster(t);
  t.match(await run('quota', 'create', 'vision', 'limits.cpu'), { code: 2, err: /expected key=amount/ });
  t.match(await run('quota', 'create', 'vision', 'limits.cpus=3'), { code: 2, err: /limits\.cpu/ });
  t.match(await run('quota', 'create', 'vision', 'pods=3'), {
    code: 1,
    err: /group vision was not created: the server could not find/,
  });
  const fake = join(directory, 'kubectl');
  await writeFile(fake, '#!/bin/sh\necho "$@"\n');
  await chmod(fake, 0o755);
  t.match(
    (await runAlone('quota', 'edit', 'vision', '--kubectl', fake, '--context', 'test')).out,
    /^--context=test edit bizgroupresourcequotas\.quota\.gpu-manager\.io -- vision\n$/,
  );
});

test('kubectl gpu quota tree says when no quota service has put the groups of the cluster into the ledger', async (t) => {
  const { run, server } = await testCluster(t);
  serveQuota(server);
  t.match(await run('quota', 'tree'), {
    code: 0,
    out: 'no groups; create one: kubectl gpu quota create NAME gpus=8\n',
  });
  for (const name of ['company', 'vision', 'speech'])
    server.seed('bizgroupresourcequotas', groupObject(name, { hard: { gpus: '4' } }));
  t.match(await run('quota', 'tree'), { code: 0, out: '3 groups, none in the ledger: is quota serve running?\n' });
  t.match(await run('quota', 'tree', 'vision'), {
    code: 1,
    err: /group vision is not in the ledger yet: is quota serve/,
  });
  t.match(await run('quota', 'tree', 'none'), { code: 1, err: /no group none/ });
  t.match(await run('quota', 'tree', '-o', 'json'), { code: 0, out: '' });
});

test('kubectl gpu takes -o jsonpath as kubectl does, of lists and of single objects', async (t) => {
  const { run } = await testCluster(t);
  t.equal((await run('pods', '-o', 'jsonpath={.items[*].name}')).out, 'dark train waiting');
  t.equal(
    (await run('pods', '-o', 'jsonpath={range .items[*]}{.name}{"\\t"}{.node}{"\\n"}{end}')).out,
    'dark\tnode2\ntrain\tnode1\nwaiting\tnull\n',
  );
  t.equal((await run('describe', 'train', '-o', "jsonpath={.name} on {['node']}")).out, 'train on node1');
  t.equal(
    (await run('pods', 'train', '-o', 'jsonpath={.items[0].gpus}|{.items[-1].requestedCores}|{.items[9].name}')).out,
    '[0]|30|',
  );
  t.match(await run('pods', '-o', 'jsonpath={.items[?(@.name)]}'), { code: 2, err: /jsonpath: .*is not understood/ });
  t.match(await run('pods', '-o', 'jsonpath={range .items[*]}'), { code: 2, err: /\{range\} without \{end\}/ });
  t.match(await run('pods', '-o', 'jsonpath'), { code: 2, err: /Expected .*jsonpath=/ });
});

test('kubectl gpu completes for kubectl, and its help names the plugin', async (t) => {
  const { run, server } = await testCluster(t);
  t.equal((await run('__complete', 'no')).out, 'nodes\n:4\n');
  t.equal(execFileSync(process.execPath, [COMPLETE_MAIN, 'no'], { encoding: 'utf8' }), 'nodes\n:4\n');
  t.match((await run('__complete', 'limits', 'se')).out, 'set\n:4\n');
  t.match((await run('__complete', 'pods', '-o', '')).out, 'table\nwide\njson\nyaml\nname\n:4\n');
  t.match((await run('__complete', 'describe', 'tr')).out, 'train\n:4\n');
  t.match((await run('__complete', 'limits', 'set', '-n', 'team', '')).out, /^other\n--/);
  t.match((await run('__complete', 'doctor', 'node')).out, 'node1\nnode10\nnode2\n:4\n');
  server.seed('namespaces', { metadata: { name: 'team' } });
  t.equal((await run('__complete', 'pods', '-n', 't')).out, 'team\n:4\n');
  t.equal((await run('__complete', 'describe', 'tr', '--kubeconfig', 'absent', 'tr')).out, ':4\n', 'no cluster');
  t.match((await run('nods')).err, /unknown command 'nods' \(Did you mean one of nodes, pods\?\)/);
  t.match((await run('--help')).out, /Usage: kubectl gpu \[options\]/);
  t.notMatch((await run('--help')).out, /__complete/);
});
