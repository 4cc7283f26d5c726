import { test, type Test } from 'tap';
import { KNOWN_KINDS } from '../../../src/quota/index.js';
import { readWorkloadObject } from '../../../src/quota-controller/workloads/workload-object.js';
import type { ServedKind } from '../../../src/quota-controller/workloads/kinds.js';
import { eventually } from '../../harness/eventually.js';
import { deployment, QuotaCluster } from '../cluster.js';

/** A cluster with a group and a Deployment of one replica, which no replica of the service has seen. */
async function unseen(t: Test): Promise<QuotaCluster> {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.unguarded(async () => {
    await on.createGroup('team', { 'limits.cpu': 10 });
    await on.deploy('web', 'team', 1, 1);
  });
  return on;
}

const uses = (on: QuotaCluster, cores: string): Promise<unknown> =>
  eventually(() => on.used('team') === cores, `${cores} cores to be used`);

test('a workload that was deleted while no replica ran is released by the start', async (t) => {
  const on = await unseen(t);
  await on.leave(await on.join());
  on.server.remove('deployments', 'default', 'web');
  await on.join();
  await uses(on, '0');
});

test('a start lists the workloads once, and again only if a charge has no object', async (t) => {
  const on = await unseen(t);
  const lists = (): number =>
    on.server.requests.filter(
      ({ verb, resource, query }) =>
        verb === 'list' &&
        resource === 'deployments' &&
        query['labelSelector'] !== undefined &&
        query['watch'] !== 'true',
    ).length;
  for (const expected of [1, 1, 2]) {
    const before = lists();
    const service = await on.join();
    t.equal(lists() - before, expected);
    await uses(on, expected === 2 ? '0' : '1');
    await on.leave(service);
    if (expected === 1 && before > 0) on.server.remove('deployments', 'default', 'web');
  }
});

for (const [change, cores] of [
  ['grows', '3'],
  ['is deleted', '0'],
] as const) {
  test(`a workload that ${change} while the start charges it`, async (t) => {
    const on = await unseen(t);
    on.server.inject({ verb: 'update', resource: 'bizgroupledgers' }, { do: 'delay', ms: 400 }, 1);
    const joining = on.join();
    await eventually(
      () => on.server.requests.some(({ verb, resource }) => verb === 'update' && resource === 'bizgroupledgers'),
      'the charge to be written',
    );
    if (cores === '0') on.server.remove('deployments', 'default', 'web');
    else
      on.server.edit('deployments', 'default', 'web', (object) => ({
        ...object,
        spec: { ...(object.spec as object), replicas: 3 },
      }));
    await joining;
    await uses(on, cores);
  });
}

test('equal requests of workloads are in memory once', async (t) => {
  const evaluator = KNOWN_KINDS.find(({ kind }) => kind === 'Deployment');
  if (evaluator === undefined) throw new Error('no Deployment');
  const kind = { evaluator, path: '/apis/apps/v1/deployments', resource: 'deployments' } as ServedKind;
  const read = (name: string, cores: number) => {
    const { metadata, ...rest } = deployment(name, 'team', 1, cores);
    const object = {
      ...rest,
      metadata: { ...metadata, namespace: 'default', uid: `uid-${name}`, resourceVersion: '7' },
    };
    return readWorkloadObject(kind, object, {});
  };
  const [first, second, larger] = [read('a', 1), read('b', 1), read('c', 2)];
  t.equal(first?.charge, second?.charge);
  t.not(first?.charge, larger?.charge);
  t.match(second, {
    namespace: 'default',
    name: 'b',
    demand: {
      workload: { kind: 'Deployment.apps', namespace: 'default', name: 'b', uid: 'uid-b', version: 7 },
      group: 'team',
      podSets: [{ count: 1 }],
    },
  });
});
