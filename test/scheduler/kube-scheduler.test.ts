import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import { parse } from 'yaml';
import { podWriter } from '../../src/scheduler/pod-writer.js';
import { ClusterWatch } from '../../src/scheduler/cluster-watch.js';
import { NO_LIMITS } from '../../src/cluster/eviction-limits.js';
import { Extender } from '../../src/scheduler/extender.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import type { ResourceType } from '../harness/api-server/resource-type.js';
import { kubernetesHome } from '../e2e/kubernetes-version.js';
import { clientOf } from '../kube/setting.js';
import { node, pod } from './objects.js';

// The real kube-scheduler (1.19 to 1.22, which take both kinds of configuration) at an API server in memory, asking the
// extender. Its preemption is not tried here: 1.20.0 to 1.20.9 never ask extenders about it (kubernetes pull request
// 103019).

const SCHEDULER = join(kubernetesHome(), '1.20/bin/kube-scheduler');
const MANIFESTS = fileURLToPath(new URL('../../../etc/extender', import.meta.url));
const absent = existsSync(SCHEDULER) ? false : `no ${SCHEDULER}: run npm run kubernetes -- build 1.20`;

/** What the scheduler lists besides pods and nodes; all these lists are empty. */
const resource = (group: string, version: string, plural: string, kind: string, namespaced: boolean): ResourceType => ({
  group,
  version,
  plural,
  kind,
  namespaced,
});
const LISTED = [
  resource('', 'v1', 'persistentvolumes', 'PersistentVolume', false),
  resource('', 'v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', true),
  resource('storage.k8s.io', 'v1', 'storageclasses', 'StorageClass', false),
  resource('storage.k8s.io', 'v1', 'csinodes', 'CSINode', false),
  resource('storage.k8s.io', 'v1beta1', 'csidrivers', 'CSIDriver', false),
  resource('policy', 'v1beta1', 'poddisruptionbudgets', 'PodDisruptionBudget', true),
  resource('events.k8s.io', 'v1', 'events', 'Event', true),
];

interface SchedulerPod extends KubeObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly [{ readonly resources: { readonly limits: Readonly<Record<string, string>> } }];
  };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

interface Setting {
  readonly api: ApiServer;
  readonly pods: () => SchedulerPod[];
  readonly create: (name: string, cores: number, blocks: number) => void;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A scheduler with one of the files of etc/extender, modified by `change`, for nodes with so many GPUs. */
async function start(
  t: Test,
  file: string,
  nodeGpus: readonly number[],
  change: (extender: Record<string, unknown>) => void = () => undefined,
): Promise<Setting> {
  const api = new ApiServer();
  api.define(...LISTED);
  await api.start();
  t.teardown(() => api.stop());
  for (const [at, gpus] of nodeGpus.entries()) {
    const there = node(`n${at}`, new Array<number>(gpus).fill(64));
    api.seed('nodes', {
      ...there,
      status: { ...there.status, conditions: [{ type: 'Ready', status: 'True' }] },
    } as unknown as KubeObject);
  }
  const client = clientOf(t, api.url);
  const extender = new Extender(
    {
      address: '127.0.0.1',
      port: 0,
      tls: null,
      policy: 'fragmentation',
      version: 'test',
      reservationTtlMs: 30_000,
      settleTimeoutMs: 500,
      startDelayMs: 0,
      offer: 'all',
    },
    {
      source: new ClusterWatch({ client, clock: systemClock, log: silentLog() }),
      limits: NO_LIMITS,
      writer: podWriter(client),
      clock: systemClock,
      election: null,
      log: silentLog(),
    },
  );
  await extender.start();
  t.teardown(() => extender.stop());
  const url = `http://127.0.0.1:${extender.port}`;
  await until('the extender to be ready', async () => (await fetch(`${url}/readyz`)).ok);

  const directory = t.testdir();
  const access = join(directory, 'kubeconfig');
  writeFileSync(access, kubeconfig({ url: api.url }, {}));
  const config = parse(readFileSync(join(MANIFESTS, file), 'utf8')) as {
    extenders: [Record<string, unknown>];
  } & Record<string, unknown>;
  config.extenders[0].urlPrefix = `${url}/scheduler`;
  change(config.extenders[0]);
  const path = join(directory, file);
  const flags = ['--bind-address=127.0.0.1', '--secure-port=0'];
  if (file.endsWith('.json'))
    flags.push(
      `--policy-config-file=${path}`,
      `--kubeconfig=${access}`,
      '--leader-elect=false',
      '--port=0',
      '--kube-api-content-type=application/json',
    );
  else {
    const address = `127.0.0.1:${await freePort()}`;
    flags.push(`--config=${path}`);
    Object.assign(config, {
      clientConnection: { kubeconfig: access, contentType: 'application/json', qps: 500, burst: 500 },
      leaderElection: { leaderElect: false },
      healthzBindAddress: address,
      metricsBindAddress: address,
    });
  }
  writeFileSync(path, JSON.stringify(config));
  const scheduler = spawn(SCHEDULER, flags, { stdio: 'ignore' });
  t.teardown(() => end(scheduler));
  return {
    api,
    pods: () => api.all('pods') as SchedulerPod[],
    create: (name, cores, blocks) => {
      const made = pod(name, [[cores, blocks]], { priority: 0 });
      api.seed('pods', {
        ...made,
        spec: { ...made.spec, schedulerName: 'default-scheduler' },
        status: { phase: 'Pending' },
      } as unknown as KubeObject);
    },
  };
}

const isRefused = ({ status }: SchedulerPod): boolean =>
  status.conditions?.some((condition) => condition.type === 'PodScheduled' && condition.status === 'False') === true;

function predicted({ metadata }: SchedulerPod): string | undefined {
  return metadata.annotations?.['tencent.com/predicate-gpu-idx-0'];
}

/** Cores taken from each GPU that is in use. */
function taken(pods: readonly SchedulerPod[]): number[] {
  const cores = new Map<string, number>();
  for (const there of pods) {
    for (const index of (predicted(there) ?? '').split(',').filter((text) => text !== '')) {
      const key = `${there.spec.nodeName}/${index}`;
      const wanted = Number(there.spec.containers[0].resources.limits['tencent.com/vcuda-core']);
      cores.set(key, (cores.get(key) ?? 0) + Math.min(100, wanted));
    }
  }
  return [...cores.values()];
}

const VARIANTS: readonly [string, string, ((extender: Record<string, unknown>) => void)?][] = [
  ['with its configuration file and node names only', 'scheduler-config-v1beta1.yaml'],
  ['with whole nodes', 'scheduler-config-v1beta1.yaml', (extender) => (extender.nodeCacheCapable = false)],
  ['that binds pods itself', 'scheduler-config-v1beta1.yaml', (extender) => delete extender.bindVerb],
  ['with a policy file', 'scheduler-policy.json'],
];

for (const [name, file, change] of VARIANTS) {
  test(`a real scheduler ${name} places a hundred concurrent pods and exceeds no GPU`, { skip: absent }, async (t) => {
    const { pods, create } = await start(t, file, [8, 8, 8], change);
    for (let at = 0; at < 100; at++) create(`p${at}`, at % 2 === 0 ? 30 : 50, 4);
    await until('every pod to be placed or refused', () =>
      pods().every((there) => (there.spec.nodeName === undefined ? isRefused(there) : predicted(there) !== undefined)),
    );
    const gpus = taken(pods());
    t.equal(gpus.length, 24);
    t.ok(
      gpus.every((cores) => cores <= 100),
      gpus.join(),
    );
    t.ok(
      gpus.every((cores) => cores >= 80),
      'the remaining capacity would not serve any of the pods',
    );
    t.match(
      pods()
        .find(isRefused)
        ?.status.conditions?.find(({ type }) => type === 'PodScheduled')?.message,
      /no room for \d0 cores with 4 memory blocks on one GPU|Insufficient tencent.com\/vcuda-core/,
    );
  });
}
