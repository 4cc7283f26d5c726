import { test } from 'tap';
import { CONSUMERS_PATH } from '../../../src/kube/quota/names.js';
import { QuotaCluster } from '../cluster.js';

test('a Consumer that contradicts itself, its area, its quota or the cluster is refused', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  on.server.seed('nodes', {
    metadata: { name: 'n1' },
    status: { allocatable: { cpu: '64', 'nvidia.com/gpu': '8' }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  on.server.seed('resourcequotas', {
    metadata: { name: 'q', namespace: 'web' },
    spec: { hard: { 'requests.cpu': '20' } },
  });
  await on.join();
  const make = async (name: string, spec: object): Promise<unknown> => {
    const object = { apiVersion: 'quota.gpu-manager.io/v1', kind: 'Consumer', metadata: { name }, spec };
    const { response } = await on.ask('/consumers', {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: 'u',
        operation: 'CREATE',
        resource: { group: 'quota.gpu-manager.io', resource: 'consumers' },
        name,
        object,
      },
    });
    if (!response.allowed) return response.status?.message;
    return (await on.client.request({ method: 'POST', path: CONSUMERS_PATH, body: object })).ok;
  };
  t.match(await make('a', { hard: { 'requests.cpu': 1, cpu: 2 } }), /cpu and requests\.cpu are one resource with two/);
  t.match(await make('a', { hard: { 'limits.cpus': 1 } }), /cpus/, 'the resource of a limit must be on a node');
  t.match(await make('a', { hard: { 'limits.cpu': 1 }, reserved: { 'limits.cpu': 2 } }), /2 is reserved, hard is 1/);
  t.match(await make('a', { reserved: { 'limits.cpu': 65 } }), /the cluster has 64/);
  t.match(await make('a', { reserved: { 'nvidia.com/gpus': 1 } }), /nearest known name is nvidia\.com\/gpu/);
  t.match(await make('a', { hard: { cpu: 'much' } }), /hard: cpu/);
  t.match(await make('a', { hard: { cpu: 4 }, reserved: { cpu: 5 } }), /5 is reserved, hard is 4/);
  t.match(await make('a', { reserved: { 'nvidia.com/gpu': 9 } }), /the cluster has 8/);
  t.match(await make('web', { hard: { cpu: 21 } }), /the ResourceQuota of the namespace has 20/);
  t.equal(await make('area', { hard: { cpu: 30 } }), true);
  t.match(await make('web', { parent: 'area', hard: { cpu: 20 }, reserved: { cpu: 31 } }), /is reserved/);
  t.match(await make('shop', { parent: 'area', hard: { cpu: 31 } }), /exceeds hard of the area area/);
  t.equal(await make('web', { parent: 'area', hard: { cpu: 20 }, reserved: { cpu: 5 } }), true);
  t.equal(await make('deep', { parent: 'web' }), true, 'a member may be an area');
  t.match(await make('deep', { parent: 'web', hard: { cpu: 25 } }), /exceeds hard of the area web/);
});
