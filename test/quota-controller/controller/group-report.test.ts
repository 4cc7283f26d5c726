import { test } from 'tap';
import { readGroup } from '../../../src/kube/quota/group-object.js';
import { Quota } from '../../../src/quota/internal.js';
import { groupReport, isWorthWriting } from '../../../src/quota-controller/controller/group-report.js';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const PERIOD_MS = 300_000;

const status = (used: string, rate: string) => ({
  lastReconcileTime: new Date(NOW - 60_000).toISOString(),
  used: { 'cash/limits.cpu': used, 'limits.cpu': '4' },
  burnRate: { 'cash/limits.cpu': rate },
});

test('hours of a pod that was first seen finished are reported at once', (t) => {
  t.equal(isWorthWriting(status('5.56', '0'), status('11.11', '0'), PERIOD_MS, NOW), true);
  t.equal(isWorthWriting(status('5.56', '0'), status('5.56', '0'), PERIOD_MS, NOW), false);
  t.end();
});

test('hours of running pods are reported once a period', (t) => {
  t.equal(isWorthWriting(status('5.56', '4'), status('5.63', '4'), PERIOD_MS, NOW), false);
  t.equal(isWorthWriting(status('5.56', '4'), status('5.90', '4'), PERIOD_MS, NOW + PERIOD_MS), true);
  t.end();
});

test('a condition names the workloads with GPUs that no key of the group charges, while there are any', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'team', hard: { 'requests.nvidia.com/gpu': 20 } });
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    quota.admit({
      workload: { kind: 'Job.batch', namespace: 'vision', name },
      group: 'team',
      podSets: [{ count: 3, requests: { 'tencent.com/vcuda-core': 100 } }],
    });
  const object = readGroup({ metadata: { name: 'team' }, spec: { hard: { 'requests.nvidia.com/gpu': 20 } } });
  const found = (unchargedGpus = quota.unchargedGpus('team')) =>
    groupReport(object, quota.status('team'), null, NOW, { unchargedGpus }).conditions?.find(
      ({ type }) => type === 'GpusNotCharged',
    );
  t.match(found(), {
    status: 'True',
    message:
      'no key of the group charges tencent.com/vcuda-core of Job.batch/vision/a, Job.batch/vision/b, Job.batch/vision/c, Job.batch/vision/d, Job.batch/vision/e and 2 more; add the key gpus, which counts GPUs of every resource',
  });
  t.equal(found([]), undefined);
  t.end();
});
