import { test } from 'tap';
import { DEFAULT_ARBITRATOR_POLICY, DEFAULT_FAMILIES, GROUP_LABEL, Quota } from '../../../src/quota/internal.js';
import { podsBeyondQuota, type GroupPod } from '../../../src/quota-controller/controller/beyond-quota.js';
import { GROUPS_PATH, POLICIES_PATH } from '../../../src/kube/quota/names.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const pod = (uid: string, group: string, startedAt: number | null, cores: number): GroupPod => ({
  uid,
  group,
  types: {},
  startedAt,
  needs: () => ({ requests: { cpu: cores }, limits: { cpu: cores } }),
});

test('in a group over its quota the youngest pods are beyond the quota', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 20 }, mode: 'elastic' });
  for (const name of ['lends', 'borrows'])
    quota.createGroup({ name, parent: 'root', hard: { 'limits.cpu': 10 }, mode: 'elastic' });
  const admit = (name: string, group: string, count: number, cores: number): void => {
    const podSets = [{ count, limits: { cpu: cores } }];
    t.match(quota.admit({ workload: { kind: 'Job', namespace: 'n', name }, group, podSets }), { code: 'OK' });
  };
  admit('small', 'lends', 2, 2);
  admit('large', 'borrows', 4, 4);
  const beyond = (pods: readonly GroupPod[]): readonly string[] =>
    [...podsBeyondQuota(pods, (name) => quota.status(name), DEFAULT_FAMILIES)].sort();
  const lent = [pod('s1', 'lends', 1, 2), pod('s2', 'lends', 2, 2)];
  const all = [1, 2, 3, 4].map((index) => pod(`l${index}`, 'borrows', index, 4));
  t.same(beyond([...lent, ...all]), ['l3', 'l4'], '16 of 10 cores: two pods of four cores');
  t.same(beyond([...lent, ...all.slice(0, 3)]), ['l3'], 'a replica without a pod came last');
  t.same(beyond([...lent, ...all.slice(0, 2)]), []);
  t.same(
    beyond([...lent, ...all.slice(1), pod('l1', 'borrows', null, 4)]),
    ['l1', 'l4'],
    'a pod without a node came last',
  );
  t.same(beyond([...lent, pod('other', 'unknown', 1, 9)]), []);
  t.end();
});

test("the arbitrator evicts a pod beyond its group's quota if the policy says so", async (t) => {
  for (const evictBeyondQuotaFirst of [true, false]) {
    const on = await QuotaCluster.start(0);
    t.teardown(() => on.stop());
    const arbitrator = { mode: 'on' as const, policy: { ...DEFAULT_ARBITRATOR_POLICY, graceMs: 100 }, periodMs: 20 };
    await on.join({ arbitrator });
    await on.client.request({
      method: 'POST',
      path: POLICIES_PATH,
      body: {
        apiVersion: 'quota.gpu-manager.io/v1',
        kind: 'QuotaPolicy',
        metadata: { name: 'default' },
        spec: { evictBeyondQuotaFirst },
      },
    });
    await on.client.request({
      method: 'POST',
      path: GROUPS_PATH,
      body: { metadata: { name: 'root' }, spec: { mode: 'elastic', hard: { 'limits.cpu': 4 } } },
    });
    for (const [name, cores] of [
      ['owner', 3],
      ['borrower', 1],
    ] as const)
      await on.client.request({
        method: 'POST',
        path: GROUPS_PATH,
        body: { metadata: { name }, spec: { parentBizGroup: 'root', mode: 'elastic', hard: { 'limits.cpu': cores } } },
      });
    for (const name of ['first', 'second']) on.server.seed('namespaces', { metadata: { name } });
    on.server.seed('nodes', {
      metadata: { name: 'node1' },
      status: { allocatable: { cpu: '4', pods: '110' }, conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const runs = (name: string, group: string, at: string, priority: number): void =>
      void on.server.seed('pods', {
        metadata: { name, namespace: 'first', labels: { [GROUP_LABEL]: group } },
        spec: {
          nodeName: 'node1',
          priority,
          containers: [{ name: 'main', resources: { requests: { cpu: '1' }, limits: { cpu: '1' } } }],
        },
        status: {
          phase: 'Running',
          conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: at }],
        },
      });
    // The borrower uses one core too many; its pods are older and more important than those of the owner.
    runs('b1', 'borrower', '2026-11-20T10:00:00Z', 5);
    runs('b2', 'borrower', '2026-11-20T11:00:00Z', 5);
    runs('o1', 'owner', '2026-11-20T12:00:00Z', 0);
    runs('o2', 'owner', '2026-11-20T13:00:00Z', 0);
    await eventually(() => on.used('borrower') === '2' && on.used('owner') === '2', 'the pods to be charged');
    on.server.seed('pods', {
      metadata: { name: 'w', namespace: 'second' },
      spec: { priority: 5, containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] },
      status: { phase: 'Pending' },
    });
    const gone = (): readonly string[] =>
      ['b1', 'b2', 'o1', 'o2'].filter((name) => {
        const left = on.server.read('pods', 'first', name);
        return left === null || left.metadata.deletionTimestamp !== undefined;
      });
    await eventually(() => gone().length > 0, 'an eviction');
    t.same(gone(), [evictBeyondQuotaFirst ? 'b2' : 'o2']);
  }
});
