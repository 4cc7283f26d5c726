import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import tap, { test, type Test } from 'tap';
import { ApiServer } from '../harness/api-server/api-server.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { MAIN } from '../harness/programs.js';
import { node, plainNode, pod } from '../scheduler/objects.js';
import { post } from '../scheduler/scheduler.js';
import { Commands } from './commands.js';

const commands = new Commands();

tap.teardown(() => commands.close());

interface Running {
  readonly api: ApiServer;
  readonly child: ChildProcess;
  readonly url: string;
  readonly config: string;
}

/** The command as a process of its own, with an API server of two nodes. */
async function run(t: Test): Promise<Running> {
  const api = new ApiServer();
  await api.start();
  for (const there of [node('n0', [16, 16]), node('n1', [16, 16]), plainNode('cpu', 0, 0)])
    api.seed('nodes', there as KubeObject);
  const config = join(t.testdir(), 'kubeconfig');
  writeFileSync(config, kubeconfig({ url: api.url }, {}));
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [MAIN, 'extender', `--address=127.0.0.1:${port}`, `--kubeconfig=${config}`, '--policy=binpack', '--log-level=warn'],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await api.stop();
  });
  const url = `http://127.0.0.1:${port}`;
  await until('the extender to be ready', () =>
    fetch(`${url}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    ),
  );
  return { api, child, url, config };
}

/** What the command prints, without blocking an API server of this process. */
/** What the command prints; the exit code has to be 0. */
async function printed(...args: string[]): Promise<string> {
  const { code, text } = await ended(...args);
  if (code !== 0) throw new Error(`exit code ${code}`);
  return text;
}

async function ended(...args: string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const { code, out } = await commands.gpuManager(['extender', ...args]);
  return { code, text: out };
}

test('the extender as a process decides, binds, follows the cluster, explains and ends', async (t) => {
  const { api, child, url, config } = await run(t);
  const decide = async (name: string, cores: number): Promise<string | undefined> => {
    const wanted = api.seed('pods', pod(name, [[cores, 4]]) as KubeObject);
    const { NodeNames } = await post<{ NodeNames: string[] }>(`${url}/scheduler/predicates`, {
      Pod: wanted,
      NodeNames: ['n0', 'n1', 'cpu'],
    });
    return NodeNames[0];
  };

  t.equal(await decide('bound-here', 60), 'n0');
  await post(`${url}/scheduler/bind`, {
    PodName: 'bound-here',
    PodNamespace: 'default',
    PodUID: 'uid-bound-here',
    Node: 'n0',
  });
  t.match(api.read('pods', 'default', 'bound-here'), {
    metadata: {
      annotations: {
        'tencent.com/predicate-gpu-idx-0': '0',
        'tencent.com/predicate-node': 'n0',
        'tencent.com/gpu-assigned': 'false',
      },
    },
    spec: { nodeName: 'n0' },
  });
  t.match(
    await post(`${url}/scheduler/bind`, {
      PodName: 'bound-here',
      PodNamespace: 'default',
      PodUID: 'another',
      Node: 'n0',
    }),
    { Error: /not known/ },
  );

  t.equal(await decide('bound-elsewhere', 60), 'n0');
  api.edit('pods', 'default', 'bound-elsewhere', (object) => ({
    ...object,
    spec: { ...(object.spec as object), nodeName: 'n0' },
  }));
  await until(
    'the prediction',
    () =>
      api.read('pods', 'default', 'bound-elsewhere')?.metadata.annotations?.['tencent.com/predicate-gpu-idx-0'] === '1',
  );

  t.equal(await decide('next', 60), 'n1', 'both GPUs of n0 are in use');
  const podFile = join(dirname(config), 'pod.json');
  writeFileSync(podFile, JSON.stringify({ kind: 'Pod', ...pod('asked', [[60, 4]]) }));
  const live = JSON.parse(await printed('--explain', podFile, '--kubeconfig', config, '-o', 'json')) as {
    nodes: unknown[];
  };
  t.match(live.nodes, [
    { node: 'n1', fits: true, score: 10, gpus: [{ indexes: [0] }] },
    { node: 'cpu', fits: false },
    { node: 'n0', fits: false, reason: /asked for 60 cores/ },
  ]);

  api.remove('pods', 'default', 'bound-here');
  await until('the GPU to be free', async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('gpu_extender_free_gpus 3'),
  );

  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  t.equal(code, 0);
});

test('the explain command reads a cluster description from a file, without an API server', async (t) => {
  const directory = t.testdir();
  const [state, podFile] = [join(directory, 'state.json'), join(directory, 'pod.yaml')];
  const inZoneA = { labels: { zone: 'a' } };
  const busy = pod('busy', [[80, 4]], { nodeName: 'full' });
  const items = [
    { kind: 'Node', ...node('full', [16], inZoneA) },
    { kind: 'Node', ...node('idle', [16, 16], inZoneA) },
    { kind: 'Node', ...node('small', [2], inZoneA) },
    { kind: 'Node', ...node('cordoned', [16], inZoneA), spec: { unschedulable: true } },
    { kind: 'Node', ...node('other', [16], { labels: { zone: 'b' } }) },
    { kind: 'Pod', ...busy },
  ];
  writeFileSync(state, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  writeFileSync(
    podFile,
    [
      'kind: Pod',
      'metadata: {name: train, namespace: team}',
      'spec:',
      '  nodeSelector: {zone: a}',
      '  containers:',
      '  - name: main',
      '    resources: {limits: {tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 8}}',
    ].join('\n'),
  );
  const text = await printed('--explain', podFile, '--state', state);
  const line = (name: string) => text.split('\n').find((row) => row.startsWith(`${name} `)) ?? '';
  t.match(text, /^pod team\/train: 1 container needs a GPU, 1 of 5 nodes fit/);
  t.match(line('idle'), /yes +\d+ +container 0: GPU 0/);
  t.match(line('full'), /no .*asked for 50 cores and 2048 MiB on one GPU; the best, GPU 0, has 20 cores/);
  t.match(line('small'), /no .*asked for 50 cores and 2048 MiB/);
  t.match(line('other'), /no +the pod's node selector or affinity/);
  t.match(line('cordoned'), /no +the node is cordoned/);
});

test('the explain command follows the annotations that choose GPUs, and names them', async (t) => {
  const directory = t.testdir();
  const write = (name: string, content: object): string => {
    const file = join(directory, name);
    writeFileSync(file, JSON.stringify(content));
    return file;
  };
  const items = [
    { kind: 'Node', ...node('new', [16, 16], { models: ['Tesla T4', 'NVIDIA A10'] }) },
    { kind: 'Node', ...node('old', [16, 16]) },
  ];
  const state = write('state.json', { apiVersion: 'v1', kind: 'List', items });
  const asking = (annotations: Readonly<Record<string, string>>): string => {
    const asked = pod('train', [[50, 8]]);
    return write('pod.json', { kind: 'Pod', ...asked, metadata: { ...asked.metadata, annotations } });
  };
  const annotations = { 'tencent.com/use-gpu-model': 'A10', 'tencent.com/node-policy': 'spread' };
  const text = await printed('--explain', asking(annotations), '--state', state);
  t.match(text, /^new +yes +10 +container 0: GPU 1 +the node would be 25 % in use$/m);
  t.match(
    text,
    /^old +no .*none may be chosen; only none may be chosen \(annotation tencent\.com\/use-gpu-model: A10\)$/m,
  );
  const wrong = await ended('--explain', asking({ 'tencent.com/same-numa': 'yes' }), '--state', state);
  t.equal(wrong.code, 1);
  t.match(wrong.text, /annotation tencent\.com\/same-numa is "yes"; it can be "required" or "preferred"/);
});

test('the explain command applies taints, workloads and the exit code as the scheduler would', async (t) => {
  const directory = t.testdir();
  const write = (name: string, object: unknown): string => {
    const file = join(directory, name);
    writeFileSync(file, JSON.stringify(object));
    return file;
  };
  const tainted = (name: string, ...taints: unknown[]) => ({ kind: 'Node', ...node(name, [16]), spec: { taints } });
  const state = write('state.json', {
    kind: 'List',
    items: [
      { kind: 'Node', ...node('open', [16]) },
      tainted('team', { key: 'dedicated', value: 'x', effect: 'NoSchedule' }),
      tainted('leaving', { key: 'maintenance', effect: 'NoExecute' }),
      tainted('soft', { key: 'slow', effect: 'PreferNoSchedule' }),
    ],
  });
  const { spec } = pod('any', [[60, 4]]);
  const template = { metadata: { labels: { app: 'train' } }, spec };
  const metadata = { name: 'train', namespace: 'team' };
  const deployment = write('deployment.json', { kind: 'Deployment', metadata, spec: { replicas: 3, template } });
  const text = await printed('--explain', deployment, '--state', state);
  const line = (name: string) => text.split('\n').find((row) => row.startsWith(`${name} `)) ?? '';
  t.match(text, /^a pod of Deployment team\/train: 1 container needs a GPU, 2 of 4 nodes fit/);
  t.match(line('team'), /no +the pod does not tolerate the taint dedicated=x:NoSchedule/);
  t.match(line('leaving'), /no +the pod does not tolerate the taint maintenance:NoExecute/);
  t.match(line('soft'), /yes/);

  const tolerations = [{ key: 'dedicated', operator: 'Equal', value: 'x', effect: 'NoSchedule' }];
  const job = { kind: 'Job', metadata, spec: { template: { spec: { ...spec, tolerations } } } };
  const explained = JSON.parse(await printed('--explain', write('job.json', job), '--state', state, '-o', 'json')) as {
    workload: string;
    nodes: { node: string; fits: boolean }[];
  };
  t.equal(explained.workload, 'Job');
  t.same(
    explained.nodes
      .filter(({ fits }) => fits)
      .map((row) => row.node)
      .sort(),
    ['open', 'soft', 'team'],
  );

  const cron = { kind: 'CronJob', metadata, spec: { jobTemplate: { spec: { template: { spec } } } } };
  t.match(await printed('--explain', write('cron.json', cron), '--state', state), /^a pod of CronJob team\/train/);

  const large = { kind: 'Pod', ...pod('large', [[200, 0]]) };
  t.match(await ended('--explain', write('large.json', large), '--state', state), {
    code: 1,
    text: /0 of 4 nodes fit/,
  });
  const two = { kind: 'List', items: [job, cron] };
  t.match(await commands.gpuManager(['extender', '--explain', write('two.json', two), '--state', state]), {
    code: 2,
    err: /contains 2 pods and workloads; one Pod, Deployment/,
  });
});

test('the commands refuse invalid input before they start', async (t) => {
  const env = { PATH: process.env.PATH ?? '' };
  const refused = (...args: string[]) =>
    commands.run({ program: 'gpu-manager', args: ['extender', ...args], env, directory: process.cwd(), input: '' });
  t.match(await refused('--address', 'nowhere'), { code: 2, err: /Expected host:port/ });
  t.match(await refused('--policy', 'luck'), {
    code: 2,
    err: /Allowed choices are fragmentation, binpack, spread, topology/,
  });
  t.match(await refused('--tls-cert-file', 'x'), { code: 2, err: /must be given together/ });
  t.match(await refused('--explain', '/nowhere.yaml', '--state', '/nowhere.yaml'), { code: 2, err: /cannot be read/ });
  t.match(await refused(), { code: 2, err: /no API server/ });
});
