import { test } from 'tap';
import { quotaRemains, removeRemains } from '../../../src/quota-controller/objects/removal.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

test('what is left after an uninstall is listed, and removed although no program takes the finalizers off', async (t) => {
  const on = await QuotaCluster.start(1);
  t.teardown(() => on.stop());
  await on.createGroup('root', { 'limits.cpu': 4 });
  await on.createGroup('team', { 'limits.cpu': 4 }, 'root');
  t.match(await on.deploy('web', 'team', 2, 1), { ok: true });
  const finalizers = (): number =>
    on.server.read('bizgroupresourcequotas', '', 'team')?.metadata.finalizers?.length ?? 0;
  await eventually(() => finalizers() === 1, 'the finalizer');
  on.server.seed('validatingwebhookconfigurations', { metadata: { name: 'quota' } });
  for (const service of [...on.services]) await on.leave(service);
  on.server.admission = null;
  const remains = await quotaRemains(on.client, 'quota');
  t.match(remains, {
    webhooks: ['/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/quota'],
    groups: ['root', 'team'],
  });
  t.equal(remains.definitions.length, 6);
  t.not(on.server.read('bizgroupresourcequotas', '', 'team'), null, 'listing removes nothing');
  await removeRemains(on.client, remains);
  await removeRemains(on.client, remains);
  t.same(await quotaRemains(on.client, 'quota'), { webhooks: [], groups: [], definitions: [] });
  t.not(on.server.read('deployments', 'default', 'web'), null, 'workloads stay');
});
