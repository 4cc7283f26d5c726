import { test } from 'tap';
import { declaredKind } from '../../../src/quota/index.js';
import { unchargeable } from '../../../src/quota/evaluators/chargeable-key.js';

test('keys that something charges are accepted', (t) => {
  for (const key of [
    'pods',
    'limits.cpu',
    'requests.cpu.A4',
    'memory',
    'requests.storage',
    'services.loadbalancers',
    'count/deployments.apps',
    'count/services',
    'gold.storageclass.storage.k8s.io/requests.storage',
    'vgpu.tencent.com.deviceclass.resource.k8s.io/devices',
    'requests.nvidia.com/gpu.A100',
    'requests.nvidia.com/mig-1g.5gb',
    'cash/requests.nvidia.com/gpu',
    'gpu.cards',
    'hugepages-2Mi',
    'requests.example.com/fpga',
  ])
    t.equal(unchargeable(key), null, key);
  t.end();
});

test('a key that nothing charges is refused with the nearest name that something charges', (t) => {
  const nearest = (key: string, resources: readonly string[] = []): string | undefined =>
    /nearest known name is (\S+)$/.exec(unchargeable(key, { resources }) ?? '')?.[1];
  t.equal(nearest('requests.nvidia.com/gpus'), 'requests.nvidia.com/gpu');
  t.equal(nearest('cash/requests.nvida.com/gpu'), 'cash/requests.nvidia.com/gpu');
  t.equal(nearest('count/deployment.apps'), 'count/deployments.apps');
  t.ok(nearest('count/foo.bar')?.startsWith('count/'));
  t.equal(nearest('count/cronjobs.batch'), 'count/jobs.batch', 'its Jobs are charged');
  t.equal(nearest('limits.storage'), 'requests.storage');
  t.equal(nearest('requests.example.com/fpgas', ['example.com/fpga']), 'requests.example.com/fpga', 'a node has it');
  t.end();
});

test('kinds of the policy count as well', (t) => {
  const widget = declaredKind({
    apiGroup: 'example.com',
    kind: 'Widget',
    plural: 'widgets',
    pods: [{ template: 'x' }],
  });
  t.equal(unchargeable('count/widgets.example.com', { kinds: [widget] }), null);
  t.not(unchargeable('count/widgets.example.com'), null);
  t.end();
});
