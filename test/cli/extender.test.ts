import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import { ApiServer } from '../harness/api-server/api-server.js';
import { until } from '../harness/eventually.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { node, plainNode, pod } from '../scheduler/objects.js';
import { post } from '../scheduler/scheduler.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

interface Running {
  readonly api: ApiServer;
  readonly child: ChildProcess;
  readonly url: string;
  readonly config: string;
}

/** The command as a process of its own, at an API server with two nodes. */
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

/** What the command prints, without standing in the way of an API server of this process. */
async function printed(...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, 'extender', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`exit code ${code}`);
  return text;
}

test('as a process at an API server it decides, binds, follows, explains and ends', async (t) => {
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

  t.equal(await decide('next', 60), 'n1', 'both GPUs of n0 are taken');
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

test('a description of a cluster in a file is explained without one', async (t) => {
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

test('what cannot be is refused before anything starts', (t) => {
  const refused = (...args: string[]) => {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, 'extender', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    });
    return { status, stderr };
  };
  t.match(refused('--address', 'nowhere'), { status: 2, stderr: /not host:port/ });
  t.match(refused('--policy', 'luck'), {
    status: 2,
    stderr: /Allowed choices are fragmentation, binpack, spread, topology/,
  });
  t.match(refused('--tls-cert-file', 'x'), { status: 2, stderr: /belong together/ });
  t.match(refused('--explain', '/nowhere.yaml', '--state', '/nowhere.yaml'), { status: 2, stderr: /cannot be read/ });
  t.match(refused(), { status: 2, stderr: /no API server/ });
  t.end();
});
