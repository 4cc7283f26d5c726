import { test, type Test } from 'tap';
import { GROUP_LABEL } from '../../src/quota/internal.js';
import { API_GROUP } from '../../src/kube/quota/names.js';
import { generator } from '../generator.js';
import { eventually } from '../harness/eventually.js';
import { deployment, QuotaCluster } from './cluster.js';

/** Longer than a busy machine delays a review. */
const RESERVATION_MS = 5_000;

async function cluster(t: Test, replicas = 1): Promise<QuotaCluster> {
  const started = await QuotaCluster.start(replicas);
  t.teardown(() => started.stop());
  return started;
}

const uses = (of: QuotaCluster, group: string, cores: string, key = 'limits.cpu'): Promise<unknown> =>
  eventually(() => of.used(group, key) === cores, `${group} to use ${cores} of ${key}`);

test('a workload that fits is admitted and shown in the status; one that does not fit is refused as a whole, with the reason', async (t) => {
  const on = await cluster(t);
  t.match(await on.createGroup('team', { 'limits.cpu': 10 }), { ok: true });
  t.match(await on.deploy('web', 'team', 3, 2), { ok: true });
  await uses(on, 'team', '6');
  t.match(await on.deploy('big', 'team', 5, 1), {
    ok: false,
    code: 'forbidden',
    message:
      /QuotaExceeded: exceeded quota: team, requested: limits.cpu=5, used: limits.cpu=6, limited: limits.cpu=10.*at most 4 replicas fit/,
  });
  t.equal(on.server.read('deployments', 'default', 'big'), null);
  t.match(await on.deploy('small', 'team', 4, 1), { ok: true });
  await uses(on, 'team', '10');
  await on.remove('web');
  await uses(on, 'team', '4');
  t.equal(on.condition('team', 'Ready'), 'True');
});

test('objects without a group are not reviewed, and an unknown group admits nothing', async (t) => {
  const on = await cluster(t);
  t.match(await on.deploy('free', '', 100, 100), { ok: true });
  t.match(await on.deploy('lost', 'nowhere', 1, 1), { ok: false, code: 'forbidden', message: /GroupNotFound/ });
});

test('of 200 concurrent requests of which one fits, one is admitted, with two replicas of the service', async (t) => {
  const on = await cluster(t, 2);
  await on.createGroup('team', { 'limits.cpu': 10 });
  t.match(await on.deploy('first', 'team', 1, 1), { ok: true });
  const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => on.deploy(`w${index}`, 'team', 1, 5)));
  t.equal(answers.filter(({ ok }) => ok).length, 1);
  await uses(on, 'team', '6');
});

test('growth is charged in every form, shrinking is released, new images cost nothing', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 10 });
  await on.deploy('web', 'team', 2, 2);
  t.match(await on.scale('web', 5), { ok: true });
  await uses(on, 'team', '10');
  t.match(await on.scale('web', 6), { ok: false, message: /QuotaExceeded/ });
  t.match(await on.patch('web', { spec: { replicas: 6 } }), { ok: false, message: /QuotaExceeded/ });
  t.match(await on.patch('web', { metadata: { annotations: { note: 'new' } } }), { ok: true });
  t.match(await on.scale('web', 1), { ok: true });
  await uses(on, 'team', '2');
  t.match(
    await on.patch('web', {
      spec: {
        template: { spec: { containers: [{ name: 'main', image: 'busybox', resources: { limits: { cpu: 11 } } }] } },
      },
    }),
    { ok: false, message: /QuotaExceeded/ },
  );
  const scaler = (maxReplicas: number) =>
    on.client.request({
      method: 'POST',
      path: '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers',
      body: {
        metadata: { name: `h${maxReplicas}` },
        spec: { maxReplicas, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } },
      },
    });
  t.match(await scaler(5), { ok: true });
  t.match(await scaler(6), { ok: false, message: /at most 5 replicas fit/ });
});

test('a label can change to a group with room, and cannot be removed while it is charged', async (t) => {
  const on = await cluster(t);
  await on.createGroup('a', { 'limits.cpu': 10 });
  await on.createGroup('b', { 'limits.cpu': 5 });
  await on.deploy('web', 'a', 4, 2);
  await uses(on, 'a', '8');
  const label = (group: string | null) => on.patch('web', { metadata: { labels: { [GROUP_LABEL]: group } } });
  t.match(await label('b'), { ok: false, message: /QuotaExceeded.*quota: b/ });
  t.match(await label(null), { ok: false, message: /LabelRemoved/ });
  await on.scale('web', 2);
  await uses(on, 'a', '4');
  t.match(await label('b'), { ok: true });
  await uses(on, 'b', '4');
  await uses(on, 'a', '0');
  await on.scale('web', 0);
  await uses(on, 'b', '0');
  t.match(await label(null), { ok: true });
});

test('a dry run answers like the real request and writes nothing', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 4 });
  await uses(on, 'team', '0');
  const ledger = on.server.read('bizgroupledgers', '', 'team')?.metadata.resourceVersion;
  t.match(await on.deploy('web', 'team', 5, 1, { dryRun: 'All' }), { ok: false, message: /QuotaExceeded/ });
  t.match(await on.deploy('web', 'team', 4, 1, { dryRun: 'All' }), { ok: true });
  t.match(
    await on.client.request({
      method: 'POST',
      path: '/apis/quota.gpu-manager.io/v1/bizgroupresourcequotas',
      query: { dryRun: 'All' },
      body: { metadata: { name: 'kid' }, spec: { parentBizGroup: 'team', hard: { 'limits.cpu': 5 } } },
    }),
    { ok: false, message: /ParentExceeded/ },
  );
  t.equal(on.server.read('bizgroupledgers', '', 'team')?.metadata.resourceVersion, ledger);
});

test('the reservation of an admitted object that another webhook refuses is released', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ reservationMs: RESERVATION_MS });
  await on.createGroup('team', { 'limits.cpu': 4 });
  const fault = on.server.inject({ verb: 'create', resource: 'deployments' }, { do: 'answer', code: 500 }, 1);
  const review = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'r',
      operation: 'CREATE',
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      namespace: 'default',
      name: 'ghost',
      object: { ...deployment('ghost', 'team', 4, 1), apiVersion: 'apps/v1', kind: 'Deployment' },
    },
  };
  t.equal((await on.ask('/workloads', review)).response.allowed, true);
  t.equal((await on.ask('/workloads', review)).response.allowed, true, 'asked twice it is one');
  fault.remove();
  t.match(await on.deploy('web', 'team', 1, 1), { ok: false, message: /QuotaExceeded/ });
  await eventually(async () => (await on.deploy('web', 'team', 4, 1)).ok, 'the room to come back');
});

test('the webhook refuses to move a group, because older API servers do not validate custom resources', async (t) => {
  const on = await cluster(t);
  await on.createGroup('company', { 'limits.cpu': 20 });
  await on.createGroup('team', { 'limits.cpu': 8 }, 'company');
  const oldObject = on.server.read('bizgroupresourcequotas', '', 'team');
  const object = { ...oldObject, spec: { parentBizGroup: '', hard: { 'limits.cpu': 8 } } };
  const { response } = await on.ask('/groups', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      resource: { group: API_GROUP, version: 'v1', resource: 'bizgroupresourcequotas' },
      name: 'team',
      operation: 'UPDATE',
      userInfo: { username: 'tester' },
      object,
      oldObject,
    },
  });
  t.match(response, { allowed: false, status: { message: /ParentImmutable/ } });
});

test('a tree is created, resized and deleted from its leaves', async (t) => {
  const on = await cluster(t);
  t.match(await on.createGroup('company', { 'limits.cpu': 20 }), { ok: true });
  t.match(await on.createGroup('division', { 'limits.cpu': 12 }, 'company'), { ok: true });
  t.match(await on.createGroup('team', { 'limits.cpu': 8 }, 'division'), { ok: true });
  t.match(await on.createGroup('other', { 'limits.cpu': 5 }, 'division'), { ok: false, message: /ParentExceeded/ });
  t.match(await on.createGroup('orphan', { 'limits.cpu': 1 }, 'nobody'), { ok: false, message: /ParentNotFound/ });
  await uses(on, 'company', '12');
  t.match(await on.updateGroup('team', { 'limits.cpu': 13 }), { ok: false, message: /ParentExceeded/ });
  t.match(await on.updateGroup('team', { 'limits.cpu': 10 }), { ok: true });
  await uses(on, 'division', '10');
  t.match(await on.updateGroup('division', { 'limits.cpu': 9 }), { ok: false, message: /BelowChildren/ });
  t.match(await on.updateGroup('team', { 'limits.cpu': 3 }), { ok: true });
  await uses(on, 'division', '3');
  t.match(await on.updateGroup('team', { 'limits.cpu': 3 }, { parentBizGroup: 'company' }), {
    ok: false,
    message: /groups do not move/,
  });
  await on.deploy('web', 'team', 3, 1);
  await uses(on, 'team', '3');
  t.match(await on.deleteGroup('division'), { ok: false, message: /NotLeaf/ });
  t.match(await on.deleteGroup('team'), { ok: false, message: /HasWorkloads/ });
  await on.remove('web');
  await uses(on, 'team', '0');
  for (const name of ['team', 'division', 'company']) {
    await eventually(async () => (await on.deleteGroup(name)).ok, `${name} to be deleted`);
    await eventually(() => on.server.read('bizgroupresourcequotas', '', name) === null, `${name} to be gone`);
  }
  await eventually(() => on.server.all('bizgroupledgers').length === 0, 'the ledger to be empty');
});

test('a group that is reduced below its usage blocks growth and reports it', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 10 });
  await on.deploy('web', 'team', 8, 1);
  await uses(on, 'team', '8');
  t.match(await on.updateGroup('team', { 'limits.cpu': 5 }), { ok: true });
  await eventually(() => on.condition('team', 'OverQuota') === 'True', 'the condition');
  t.match(await on.scale('web', 9), { ok: false });
  t.match(await on.scale('web', 7), { ok: true });
  await uses(on, 'team', '7');
});

test('a restarted service finds everything again, and what changed meanwhile', async (t) => {
  const on = await cluster(t);
  await on.createGroup('team', { 'limits.cpu': 10 });
  await on.deploy('stays', 'team', 2, 1);
  await on.deploy('goes', 'team', 3, 1);
  await uses(on, 'team', '5');
  const [service] = on.services;
  if (service !== undefined) await on.leave(service);
  on.server.remove('deployments', 'default', 'goes');
  on.server.seed('deployments', deployment('came', 'team', 4, 1));
  await on.join();
  await uses(on, 'team', '6');
  t.match(await on.deploy('more', 'team', 5, 1), { ok: false, message: /used: limits.cpu=6/ });
});

test('a replica that starts while every third request fails becomes ready with a complete ledger', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  for (const [name, parent] of [
    ['root', ''],
    ...Array.from({ length: 12 }, (_, index) => [`g${index}`, 'root']),
  ] as const)
    on.server.seed('bizgroupresourcequotas', {
      metadata: { name },
      spec: { parentBizGroup: parent, hard: { 'limits.cpu': parent === '' ? 1000 : 50 } },
    });
  for (let index = 0; index < 48; index++)
    on.server.seed('deployments', deployment(`w${index}`, `g${index % 12}`, 2, 1));
  const random = generator(7);
  const effects = [
    { do: 'answer', code: 500 },
    { do: 'answer', code: 503 },
    { do: 'lose-answer' },
    { do: 'reset' },
  ] as const;
  const joining = on.join();
  // Every third request fails from the first list of the groups on.
  let left = 0;
  let healthy = -1;
  const timer = setInterval(() => {
    if (healthy < 0 && on.server.requests.some(({ resource }) => resource === 'bizgroupresourcequotas'))
      healthy = on.server.requests.length;
    const due = healthy < 0 ? 0 : Math.floor((on.server.requests.length - healthy) / 3);
    for (; left < due; left++)
      on.server.inject(
        { verb: ['get', 'list', 'create', 'update', 'patch'] },
        effects[Math.floor(random() * effects.length)] ?? { do: 'reset' },
        1,
      );
  }, 1);
  t.teardown(() => clearInterval(timer));
  await joining;
  clearInterval(timer);
  on.server.clearFaults();
  for (let index = 0; index < 12; index++)
    await eventually(() => on.used(`g${index}`) === '8', `the workloads of g${index} to be charged`);
});

test('an increase of a group is reserved until its object is observed, or released when that does not happen', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ reservationMs: RESERVATION_MS });
  await on.createGroup('root', { 'limits.cpu': 20 });
  await on.createGroup('a', { 'limits.cpu': 5 }, 'root');
  await on.createGroup('b', { 'limits.cpu': 5 }, 'root');
  await uses(on, 'root', '10');
  const object = on.server.read('bizgroupresourcequotas', '', 'a');
  const grown = { ...object, spec: { ...(object?.spec as object), hard: { 'limits.cpu': 15 } } };
  // The API server reviews the growth, and writes the object later or never.
  const { response } = await on.ask('/groups', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'late',
      resource: { group: 'quota.gpu-manager.io', version: 'v1', resource: 'bizgroupresourcequotas' },
      operation: 'UPDATE',
      object: grown,
      oldObject: object,
      userInfo: { username: 'tester' },
    },
  });
  t.equal(response.allowed, true);
  await uses(on, 'root', '20');
  // The old object is observed again meanwhile.
  on.server.edit('bizgroupresourcequotas', '', 'a', (old) => ({
    ...old,
    metadata: { ...old.metadata, annotations: { 'biz.group.resource.quota/force': 'true' } },
  }));
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.match(await on.updateGroup('b', { 'limits.cpu': 10 }), { ok: false, message: /ParentExceeded/ });
  await uses(on, 'root', '10');
  t.match(await on.updateGroup('b', { 'limits.cpu': 10 }), { ok: true });
  t.match(await on.updateGroup('a', { 'limits.cpu': 10 }), { ok: true });
  await uses(on, 'root', '20');
  t.equal(on.condition('a', 'Ready'), 'True');
});
