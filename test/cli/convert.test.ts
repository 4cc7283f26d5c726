import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { MAIN } from '../harness/programs.js';

const convert = (args: readonly string[], input = '') =>
  spawnSync(process.execPath, [MAIN, 'convert', ...args], { encoding: 'utf8', input });

const MANIFEST = `# serves the model
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  template:
    spec:
      schedulerName: hami-scheduler
      containers:
        - name: main
          resources:
            limits:
              nvidia.com/gpu: 1 # one part
              nvidia.com/gpumem: 3000
---
kind: Service
metadata: { name: web }
---
kind: Pod
metadata: { name: old }
spec:
  containers:
    - name: main
      resources: { limits: { nvidia.com/gpu: 2 } }
`;

test('convert writes requests of others with those of gpu-manager, and says what differs', (t) => {
  const file = join(t.testdir(), 'web.yaml');
  writeFileSync(file, MANIFEST);
  const { status, stdout, stderr } = convert([file]);
  t.equal(status, 0, stderr);
  t.match(stdout, /^# serves the model\n/);
  t.match(stdout, /tencent\.com\/vcuda-core: 10\n +tencent\.com\/vcuda-memory: 12\n/);
  t.match(stdout, /tencent\.com\/vcuda-core-limit: main=100/);
  t.match(stdout, /---\nkind: Service\nmetadata: \{ name: web \}\n---\n/);
  t.match(stdout, /tencent\.com\/vcuda-core: 200/);
  t.notMatch(stdout, /nvidia|hami/);
  t.match(
    stderr,
    /^gpu-manager: Deployment web: container main: its compute has no limit; .*3000 MiB become 12 blocks/,
  );
  t.match(convert([file, '--share', 'cores=25,memory=8GiB']), { status: 0, stdout: /tencent\.com\/vcuda-gpus: "2"/ });
  t.match(convert(['-', '--share', 'cores=25,memory=10%'], MANIFEST).stderr, /Pod old: not converted: container main/);
  t.end();
});

test('convert takes the priority of HAMi, and names its environment variables', (t) => {
  const pod = (priority: number, more = '') =>
    `kind: Pod
metadata: { name: p }
spec:
  containers:
    - name: main
      env: [{ name: CUDA_DEVICE_SM_LIMIT, value: '40' }]
      resources: { limits: { nvidia.com/gpu: 1, nvidia.com/gpumem: 2048, nvidia.com/gpucores: 30, nvidia.com/priority: ${priority} } }
${more}`;
  const low = convert(['-'], pod(1));
  t.match(low, { status: 0, stdout: /tencent\.com\/vcuda-priority: low/, stderr: /CUDA_DEVICE_SM_LIMIT has no equal/ });
  t.notMatch(low.stdout, /nvidia/, 'no request is left that no node serves');
  t.match(convert(['-'], pod(0)).stdout, /tencent\.com\/vcuda-priority: high/);
  const both = convert(
    ['-'],
    pod(0, '    - { name: two, resources: { limits: { nvidia.com/gpumem: 512, nvidia.com/priority: 1 } } }\n'),
  );
  t.match(both.stderr, /several values of nvidia\.com\/priority; a pod has one priority/);
  t.notMatch(both.stdout, /vcuda-priority|nvidia/);
  t.end();
});

/** As the proposal that first described them writes a Consumer and an Allocation, its spelling included. */
const PROPOSED = `apiVersion: kuabe-arbitrator.incubator.k8s.io/v1
kind: Consumer
metadata:
  name: defaults
spec:
  hard:
    requests.cpu: "1"
    requests.memory: 1Gi
    limits.cpu: "2"
    limits.memory: 2Gi
  reserved:
    limits.memory: 1Gi
`;

test('convert makes Consumers of kube-arbitrator those of the quota service', (t) => {
  const own = PROPOSED.replace('kuabe-arbitrator.incubator.k8s.io/v1', 'quota.gpu-manager.io/v1');
  t.same(convert(['-'], PROPOSED).stdout, own);
  const allocation = PROPOSED.replace('Consumer', 'Allocation').replace('spec:', 'spec:\n  deserved:\n    cpu: "1.5"');
  const both = convert(['-'], `${PROPOSED}---\n${allocation}`);
  t.match(both, { status: 0, stdout: own, stderr: 'Allocation defaults: left out: the arbitrator writes' });
  const item = (kind: string): string =>
    `{apiVersion: kube-arbitrator.incubator.k8s.io/v1, kind: ${kind}, metadata: {name: limits, namespace: shop}}`;
  const items = ['Allocation', 'Consumer', 'Allocation'].map(item).join(', ');
  t.match(convert(['-'], `{kind: List, items: [${items}]}`), {
    status: 0,
    stdout:
      '{ kind: List, items: [ { apiVersion: quota.gpu-manager.io/v1, kind: Consumer, metadata: { name: shop } } ] }\n',
    stderr: 'Consumer limits: named shop, after its namespace',
  });
  t.end();
});

test('convert names what is wrong with its input', (t) => {
  t.match(convert(['/nowhere.yaml']), { status: 2, stderr: /\/nowhere\.yaml/ });
  t.match(convert(['-'], 'a: [').stderr, /- is not valid YAML or JSON/);
  t.match(convert(['-', '--share', 'half']), { status: 2, stderr: /Expected whole, or cores=25,memory=8GiB/ });
  t.match(convert(['-', '--gpu-memory', '10%']), { status: 2, stderr: /Expected an amount such as 80GiB/ });
  t.end();
});

test('convert checks the annotations of the pods that it prints by their readers', (t) => {
  const pod = (annotations: string, resources: string): string =>
    `kind: Pod
metadata: { name: p, annotations: { ${annotations} } }
spec: { containers: [{ name: main, resources: { limits: { ${resources} } } }] }
`;
  const foreign = 'nvidia.com/gpu: 1, nvidia.com/gpumem: 3000';
  const own = 'tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 4';
  for (const resources of [foreign, own])
    for (const [annotation, reason] of [
      ['tencent.com/use-gpu-modle: A10', /annotation tencent\.com\/use-gpu-modle has no meaning; write/],
      ['tencent.com/gpu-policy: mutex', /annotation tencent\.com\/gpu-policy is "mutex"; it can be/],
      ['tencent.com/vcuda-priority: urgent', /vcuda-priority: "urgent" is not high, normal or low/],
      ['tencent.com/vcuda-memory-limit: main=much', /vcuda-memory-limit: "much" is not a number of blocks/],
      ['tencent.com/vcuda-memory-oversubscribe: lowest', /"lowest" is not high, normal or low/],
      ['tencent.com/vcuda-enforcement: off', /"off" is not limits or none/],
    ] as const)
      t.match(convert(['-'], pod(annotation.replace(/: (.*)$/, ': "$1"'), resources)), { status: 1, stderr: reason });
  t.match(convert(['-'], pod('tencent.com/use-gpu-modle: A10', 'cpu: 1')), { status: 0, stderr: '' }, 'no GPU');
  t.match(convert(['-'], pod("tencent.com/vcuda-memory-limit: 'main=8'", foreign)), { status: 0 });
  t.end();
});
