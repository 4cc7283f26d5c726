import { test } from 'tap';
import { Quota } from '../../../src/quota/internal.js';
import { admissionResponseOf } from '../../../src/quota-controller/admission/decision-response.js';

test('a user reads in a warning that the group does not limit the GPUs of an admitted workload', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'team', hard: { 'requests.nvidia.com/gpu': 20 } });
  const job = (resource: string) => ({
    workload: { kind: 'Job.batch', namespace: 'vision', name: 'train' },
    group: 'team',
    podSets: [{ count: 3, requests: { [resource]: 1 } }],
  });
  t.same(admissionResponseOf(quota.admit(job('nvidia.com/gpu'), { dryRun: true })), { allowed: true });
  t.match(admissionResponseOf(quota.reserve(job('tencent.com/vcuda-core'), 1000)), {
    allowed: true,
    warnings: [/^NotCharged: no key of group team charges tencent\.com\/vcuda-core/],
  });
  t.end();
});
