import tap, { test, type Test } from 'tap';
import { spawnSync } from 'node:child_process';
import { MERGE_PATCH, type KubeAnswer, type KubeRequest } from '../../src/kube/client.js';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { GROUPS_PATH, LEDGERS_PATH } from '../../src/kube/quota/names.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { deployment } from '../quota-controller/cluster.js';
import { TestCluster } from './cluster.js';
import { clusterClient } from './cluster-client.js';
import { customResourcesOrSkip } from './custom-resources.js';
import { MutatingWebhook } from './mutating-webhook.js';
import { Balancer, QuotaProcess } from './quota-process.js';
import { until } from '../harness/eventually.js';
import { MAIN } from '../harness/programs.js';

tap.setTimeout(900_000);

const cluster = new TestCluster();
const client = await clusterClient(cluster);
await customResourcesOrSkip(cluster, client);
const balancer = new Balancer();
await balancer.start();
const replica = (name: string, port: number): QuotaProcess =>
  new QuotaProcess({
    name,
    port,
    kubeconfig: cluster.kubeconfig,
    url: balancer.url,
    directory: cluster.directory,
    more: ['--refresh-period', '2'],
  });
const [one, two] = [replica('one', 18_443), replica('two', 18_444)];

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gpu-manager-quota';

tap.teardown(async () => {
  await Promise.all([one.end('SIGTERM'), two.end('SIGTERM')]);
  await client.request({ method: 'DELETE', path: CONFIGURATION });
  await balancer.stop();
  client.close();
});

const APPLY_PATCH = 'application/apply-patch+yaml';
const APPS = '/apis/apps/v1/namespaces/default';
const ask = (request: KubeRequest): Promise<KubeAnswer> => client.request(request);
const deploy = (name: string, group: string, replicas: number, cores: number): Promise<KubeAnswer> =>
  ask({
    method: 'POST',
    path: `${APPS}/deployments`,
    body: { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment(name, group, replicas, cores) },
  });
const patch = (name: string, body: object): Promise<KubeAnswer> =>
  ask({ method: 'PATCH', path: `${APPS}/deployments/${name}`, body, contentType: MERGE_PATCH });
const scale = (name: string, replicas: number): Promise<KubeAnswer> =>
  ask({
    method: 'PATCH',
    path: `${APPS}/deployments/${name}/scale`,
    body: { spec: { replicas } },
    contentType: MERGE_PATCH,
  });
const remove = (name: string): Promise<KubeAnswer> => ask({ method: 'DELETE', path: `${APPS}/deployments/${name}` });
const makeGroup = (name: string, hard: object, parentBizGroup = ''): Promise<KubeAnswer> =>
  ask({
    method: 'POST',
    path: GROUPS_PATH,
    body: {
      apiVersion: 'quota.gpu-manager.io/v1',
      kind: 'BizGroupResourceQuota',
      metadata: { name },
      spec: { ...(parentBizGroup === '' ? { namespaceSelector: {} } : { parentBizGroup }), hard },
    },
  });
const resize = (name: string, hard: object): Promise<KubeAnswer> =>
  ask({ method: 'PATCH', path: `${GROUPS_PATH}/${name}`, body: { spec: { hard } }, contentType: MERGE_PATCH });
const dropGroup = (name: string): Promise<KubeAnswer> => ask({ method: 'DELETE', path: `${GROUPS_PATH}/${name}` });

interface CronJob {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly jobTemplate: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } };
  };
}

interface Status {
  readonly used?: Readonly<Record<string, string>>;
  readonly reservations?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

async function statusOf(group: string): Promise<Status> {
  const answer = await ask({ method: 'GET', path: `${GROUPS_PATH}/${group}` });
  return answer.ok ? (((answer.body as KubeObject).status as Status | undefined) ?? {}) : {};
}

const uses = (group: string, amount: string, key = 'limits.cpu'): Promise<unknown> =>
  until(`${group} to use ${amount} of ${key}`, async () => (await statusOf(group)).used?.[key] === amount, 30_000);
const exists = async (path: string): Promise<boolean> => (await ask({ method: 'GET', path })).ok;

/** Deployments and a group that end with the test. */
async function cleared(t: Test, groups: readonly string[], deployments: readonly string[]): Promise<void> {
  for (const name of deployments) await remove(name);
  for (const name of groups) {
    await until(
      `${name} to be deleted`,
      async () => {
        await dropGroup(name);
        return !(await exists(`${GROUPS_PATH}/${name}`));
      },
      40_000,
    );
  }
  t.notOk(await exists(`${LEDGERS_PATH}/${groups[0] ?? ''}`), 'nothing is left in the ledger');
}

test('two replicas start, register and receive requests', async (t) => {
  await Promise.all([one.start(), two.start()]);
  balancer.serve(one, two);
  t.ok(await exists(CONFIGURATION));
  await until(
    'the webhooks to be asked',
    async () => {
      const answer = await deploy('probe', 'there-is-no-such-group', 1, 1);
      await remove('probe');
      return !answer.ok && /GroupNotFound/.test(answer.message);
    },
    30_000,
  );
});

test('a deployment over quota is refused as a whole, with the reason', async (t) => {
  t.match(await makeGroup('team', { 'limits.cpu': 10 }), { ok: true });
  t.match(await deploy('web', 'team', 3, 2), { ok: true });
  await uses('team', '6');
  t.match(await deploy('big', 'team', 5, 1), {
    ok: false,
    code: 'forbidden',
    message:
      /admission webhook "workloads.quota.gpu-manager.io" denied the request: QuotaExceeded: exceeded quota: team, requested: limits.cpu=5, used: limits.cpu=6, limited: limits.cpu=10/,
  });
  t.notOk(await exists(`${APPS}/deployments/big`));
  await cleared(t, ['team'], ['web']);
});

test('the commands show the ledger of the cluster, and the reason of a refusal', async (t) => {
  await makeGroup('company', { 'limits.cpu': 20 });
  await makeGroup('team', { 'limits.cpu': 8 }, 'company');
  await deploy('web', 'team', 3, 2);
  await uses('team', '6');
  const quota = (...args: string[]): string =>
    spawnSync(process.execPath, [MAIN, 'quota', ...args, '--kubeconfig', cluster.kubeconfig], { encoding: 'utf8' })
      .stdout;
  t.match(
    quota('tree'),
    /^GROUP .*\ncompany +limits\.cpu +20 +8 +0 +12 +40%\n {2}team +limits\.cpu +8 +6 +6 +2 +75%\n/,
  );
  t.match(quota('top', 'workloads'), /Deployment\.apps\/default\/web +team +3 +limits\.cpu +6 +8 +75%/);
  t.match(
    quota('explain', 'deploy/web', '--replicas', '5'),
    /REFUSED .*exceeded quota: team, requested: limits\.cpu=4, used: limits\.cpu=6.*at most 4 replicas fit/,
  );
  const answer = await ask({
    method: 'GET',
    path: '/apis/apps/v1/namespaces/default/replicasets',
    query: { labelSelector: 'app=web' },
  });
  const [set] = (answer as { readonly body: { readonly items: readonly KubeObject[] } }).body.items;
  t.match(
    quota('explain', `rs/${set?.metadata.name ?? ''}`),
    /^ReplicaSet default\/web-.*\n {2}of Deployment default\/web\nallowed/,
  );
  await cleared(t, ['team', 'company'], ['web']);
});

test('of 200 concurrent requests exactly one fits and is admitted', async (t) => {
  await makeGroup('race', { 'limits.cpu': 10 });
  t.match(await deploy('first', 'race', 1, 1), { ok: true });
  await uses('race', '1');
  const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => deploy(`race-${index}`, 'race', 1, 5)));
  t.equal(answers.filter(({ ok }) => ok).length, 1);
  t.same([...new Set(answers.flatMap((answer) => (answer.ok ? [] : [answer.code])))], ['forbidden']);
  await uses('race', '6');
  await cleared(t, ['race'], ['first', ...answers.flatMap(({ ok }, index) => (ok ? [`race-${index}`] : []))]);
});

test('scaling, autoscalers, labels, types, deletion and re-creation change the ledger', async (t) => {
  await makeGroup('a', { 'limits.cpu': 10, 'limits.cpu.A4': 4 });
  await makeGroup('b', { 'limits.cpu': 4 });
  t.match(await deploy('web', 'a', 2, 2), { ok: true });
  t.match(await scale('web', 5), { ok: true });
  await uses('a', '10');
  t.match(await scale('web', 6), { ok: false, message: /QuotaExceeded/ });
  const autoscaler = (max: number): Promise<KubeAnswer> =>
    ask({
      method: 'POST',
      path: '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers',
      query: { dryRun: 'All' },
      body: {
        apiVersion: 'autoscaling/v1',
        kind: 'HorizontalPodAutoscaler',
        metadata: { name: 'web' },
        spec: { maxReplicas: max, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } },
      },
    });
  t.match(await autoscaler(5), { ok: true });
  t.match(await autoscaler(6), { ok: false, message: /at most 5 replicas fit/ });
  const label = (labels: object): Promise<KubeAnswer> => patch('web', { metadata: { labels } });
  t.match(await label({ [GROUP_LABEL]: null }), { ok: false, message: /LabelRemoved/ });
  t.match(await label({ [GROUP_LABEL]: 'b' }), { ok: false, message: /quota: b/ });
  t.match(await label({ [`${GROUP_LABEL}/cpu-type`]: 'A4' }), { ok: false, message: /limits\.cpu\.A4/ });
  t.match(await scale('web', 2), { ok: true });
  await uses('a', '4');
  t.match(await label({ [`${GROUP_LABEL}/cpu-type`]: 'A4' }), { ok: true });
  await uses('a', '4', 'limits.cpu.A4');
  t.match(await label({ [`${GROUP_LABEL}/cpu-type`]: null, [GROUP_LABEL]: 'b' }), { ok: true });
  await uses('b', '4');
  await uses('a', '0');
  await remove('web');
  await uses('b', '0');
  t.match(await deploy('web', 'b', 2, 2), { ok: true });
  await uses('b', '4');
  await cleared(t, ['a', 'b'], ['web']);
});

// Before 1.22 server-side apply takes no quantities that are numbers.
const noApply = !cluster.version.atLeast(22) && 'needs Kubernetes 1.22';

test(
  'server-side apply of a workload is charged, refused and forced as other requests',
  { skip: noApply },
  async (t) => {
    await makeGroup('team', { 'limits.cpu': 10 });
    const apply = (replicas: number, query: Readonly<Record<string, string>>): Promise<KubeAnswer> =>
      ask({
        method: 'PATCH',
        path: `${APPS}/deployments/web`,
        query,
        body: { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment('web', 'team', replicas, 2) },
        contentType: APPLY_PATCH,
      });
    t.match(await apply(6, { fieldManager: 'one' }), { ok: false, message: /QuotaExceeded/ });
    t.match(await apply(3, { fieldManager: 'one' }), { ok: true });
    await uses('team', '6');
    t.match(await apply(4, { fieldManager: 'two' }), { ok: false, code: 'conflict' });
    t.match(await apply(6, { fieldManager: 'two', force: 'true' }), { ok: false, message: /QuotaExceeded/ });
    t.match(await apply(5, { fieldManager: 'two', force: 'true' }), { ok: true });
    await uses('team', '10');
    await cleared(t, ['team'], ['web']);
  },
);

test('the Jobs of a CronJob get the group that a later webhook gave it', async (t) => {
  for (const name of ['a', 'b']) {
    await makeGroup(name, { 'limits.cpu': 4 });
    await uses(name, '0');
  }
  const label = `/metadata/labels/${GROUP_LABEL.replace('/', '~1')}`;
  const later = new MutatingWebhook('zz-later', [{ op: 'replace', path: label, value: 'b' }]);
  t.teardown(() => later.stop(client));
  await later.start(client, {
    rules: [{ operations: ['CREATE'], apiGroups: ['batch'], apiVersions: ['*'], resources: ['cronjobs'] }],
    objectSelector: { matchLabels: { [GROUP_LABEL]: 'a' } },
  });
  const minor = Number(cluster.version.name.slice(2));
  const cronJobs = `/apis/batch/${minor < 21 ? 'v1beta1' : 'v1'}/namespaces/default/cronjobs`;
  const made = await until('the later webhook to be asked', async () => {
    const answer = await ask({
      method: 'POST',
      path: cronJobs,
      query: { dryRun: 'All' },
      body: {
        apiVersion: minor < 21 ? 'batch/v1beta1' : 'batch/v1',
        kind: 'CronJob',
        metadata: { name: 'nightly', labels: { [GROUP_LABEL]: 'a' } },
        spec: {
          schedule: '0 0 1 1 *',
          jobTemplate: {
            spec: {
              template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox' }] } },
            },
          },
        },
      },
    });
    if (!answer.ok) throw new Error(answer.message);
    const found = answer.body as CronJob;
    return found.metadata.labels[GROUP_LABEL] === 'b' && found;
  });
  t.equal(made.spec.jobTemplate.metadata?.labels?.[GROUP_LABEL], 'b');
  await cleared(t, ['a', 'b'], []);
});

test(
  'conditions that an operator adds to a webhook are kept when a replica registers again',
  { skip: cluster.version.atLeast(30) ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    await makeGroup('team', { 'limits.cpu': 2 });
    const conditions = [{ name: 'not-restored', expression: "!('restored' in object.metadata.labels)" }];
    interface Webhook {
      readonly name: string;
      readonly matchConditions?: readonly object[];
    }
    const registered = async (): Promise<readonly Webhook[]> => {
      const answer = await ask({ method: 'GET', path: CONFIGURATION });
      return answer.ok ? (answer.body as { readonly webhooks: readonly Webhook[] }).webhooks : [];
    };
    const setConditions = async (matchConditions: readonly object[]): Promise<void> => {
      const webhooks = (await registered()).map((webhook) =>
        webhook.name.startsWith('workloads.') ? { ...webhook, matchConditions } : webhook,
      );
      const answer = await ask({ method: 'PATCH', path: CONFIGURATION, body: { webhooks }, contentType: MERGE_PATCH });
      if (!answer.ok) throw new Error(answer.message);
    };
    const restored = (name: string): Promise<KubeAnswer> => {
      const { metadata, ...rest } = deployment(name, 'team', 1, 5) as {
        readonly metadata: { readonly labels: object };
      };
      return ask({
        method: 'POST',
        path: `${APPS}/deployments`,
        query: { dryRun: 'All' },
        body: {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { ...metadata, labels: { ...metadata.labels, restored: 'yes' } },
          ...rest,
        },
      });
    };
    t.match(await restored('before'), { ok: false, message: /QuotaExceeded/ });
    await setConditions(conditions);
    t.teardown(() => setConditions([]));
    await until('the condition to count', async () => (await restored('exempt')).ok);
    for (const each of [one, two]) {
      await each.end('SIGTERM');
      await each.start();
    }
    balancer.serve(one, two);
    t.match(
      (await registered()).filter(({ name }) => name.startsWith('workloads.')),
      [{ matchConditions: conditions }],
    );
    t.match(await restored('still'), { ok: true });
    t.match(await deploy('other', 'team', 1, 5), { ok: false, message: /QuotaExceeded/ }, 'others are asked');
    await setConditions([]);
    await until('the condition to be gone', async () => !(await restored('after')).ok);
    await cleared(t, ['team'], []);
  },
);

test('a killed replica is replaced by the other, and without a replica only managed objects wait', async (t) => {
  await makeGroup('team', { 'limits.cpu': 10 });
  t.match(await deploy('web', 'team', 4, 1), { ok: true });
  await one.end('SIGKILL');
  await until('the other one to be asked', async () => (await deploy('more', 'team', 2, 1)).ok, 20_000);
  await uses('team', '6');
  // An object that no replica has observed yet keeps its reservation for a minute, even if it is deleted meanwhile.
  await until('the admitted objects to be observed', async () => (await statusOf('team')).reservations === 0);
  await two.end('SIGKILL');
  t.match(await deploy('stuck', 'team', 1, 1), { ok: false, message: /failed calling webhook/ });
  t.match(await deploy('free', '', 1, 1), { ok: true });
  await remove('more');
  await Promise.all([one.start(), two.start()]);
  balancer.serve(one, two);
  await uses('team', '4');
  t.match(await deploy('back', 'team', 6, 1), { ok: true });
  await cleared(t, ['team'], ['web', 'back', 'free']);
});

test('the other controller takes over from a controller that is killed during a refresh', async (t) => {
  await makeGroup('team', { 'limits.cpu': 10 });
  for (let round = 0; round < 2; round++) {
    t.match(await deploy(`w${round}`, 'team', 2, 1), { ok: true });
    const victim = round === 0 ? one : two;
    await victim.end('SIGKILL');
    await uses('team', `${2 * (round + 1)}`);
    await victim.start();
    balancer.serve(one, two);
  }
  await cleared(t, ['team'], ['w0', 'w1']);
});

test('a group whose quota shrinks below its usage blocks growth and admits releases', async (t) => {
  await makeGroup('team', { 'limits.cpu': 10 });
  await deploy('web', 'team', 8, 1);
  await uses('team', '8');
  t.match(await resize('team', { 'limits.cpu': 5 }), { ok: true });
  await until(
    'the condition',
    async () =>
      (await statusOf('team')).conditions?.some(({ type, status }) => type === 'OverQuota' && status === 'True') ===
      true,
  );
  t.match(await scale('web', 9), { ok: false, message: /QuotaExceeded/ });
  t.match(await scale('web', 3), { ok: true });
  await uses('team', '3');
  await cleared(t, ['team'], ['web']);
});

test('a spent budget of hours blocks all growth', async (t) => {
  await makeGroup('team', { 'limits.cpu': 100, 'cash/limits.cpu': 40 });
  t.match(
    await ask({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'worker', labels: { [GROUP_LABEL]: 'team' } },
        spec: {
          schedulerName: 'nobody',
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: 4 } } }],
        },
      },
    }),
    { ok: true },
  );
  const lastTransitionTime = new Date(Date.now() - 11 * 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
  t.match(
    await ask({
      method: 'PATCH',
      path: '/api/v1/namespaces/default/pods/worker/status',
      contentType: MERGE_PATCH,
      body: { status: { conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime }] } },
    }),
    { ok: true },
  );
  await until(
    'the budget to be spent',
    async () =>
      (await statusOf('team')).conditions?.some(({ type, status }) => type === 'CashExhausted' && status === 'True') ===
      true,
  );
  t.match(await deploy('late', 'team', 1, 1), { ok: false, message: /CashExhausted/ });
  await ask({ method: 'DELETE', path: '/api/v1/namespaces/default/pods/worker' });
  await uses('team', '0');
  await cleared(t, ['team'], []);
});

test('a tree of three levels is created, resized and removed', async (t) => {
  t.match(await makeGroup('company', { 'limits.cpu': 20 }), { ok: true });
  t.match(await makeGroup('division', { 'limits.cpu': 12 }, 'company'), { ok: true });
  t.match(await makeGroup('team', { 'limits.cpu': 8 }, 'division'), { ok: true });
  t.match(await makeGroup('other', { 'limits.cpu': 5 }, 'division'), { ok: false, message: /ParentExceeded/ });
  await uses('company', '12');
  await uses('division', '8');
  t.match(await resize('team', { 'limits.cpu': 12 }), { ok: true });
  await uses('division', '12');
  t.match(await resize('division', { 'limits.cpu': 11 }), { ok: false, message: /BelowChildren/ });
  t.match(await resize('team', { 'limits.cpu': 2 }), { ok: true });
  await uses('division', '2');
  t.match(await dropGroup('division'), { ok: false, message: /NotLeaf/ });
  await cleared(t, ['team', 'division', 'company'], []);
});
