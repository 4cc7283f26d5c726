import { test } from 'tap';
import { topShapes, topShapesTable } from '../../src/quota-command/top.js';
import { Quota, type GroupStatus } from '../../src/quota/index.js';

const GPU = 'requests.nvidia.com/gpu';

function vision(hours: number): Quota {
  const quota = new Quota({ clock: () => 0 });
  quota.createGroup({ name: 'vision', hard: { [GPU]: 10, 'limits.cpu': 20, [`cash/${GPU}`]: hours } });
  const admit = (name: string, count: number, gpus: number, cpu: number): void => {
    const podSets = [{ count, limits: { cpu, 'nvidia.com/gpu': gpus } }];
    quota.admit({ workload: { kind: 'Job', namespace: 'v', name }, group: 'vision', podSets });
  };
  admit('train', 1, 4, 2);
  admit('serve', 1, 1, 6);
  admit('other', 1, 1, 6);
  return quota;
}

test('quota top shapes says how often each request still fits into its group, and what blocks the next', (t) => {
  const quota = vision(100);
  const rows = topShapes([quota.status('vision') as GroupStatus], quota.charges('vision'), null);
  t.match(
    rows.map(({ example, fitting }) => [example, fitting.shape.count, fitting.fits, [...fitting.blockedBy.keys()]]),
    [
      ['Job/v/serve', 2, 1, ['limits.cpu']],
      ['Job/v/train', 1, 1, [GPU]],
    ],
  );
  t.match(topShapesTable(rows), /^GROUP +LIKE +WORKLOADS +FITS +BLOCKED BY +REQUESTS\n/);
  t.equal(topShapes([quota.status('vision') as GroupStatus], quota.charges('vision'), 'pods').length, 0);
  t.equal(topShapesTable([]), 'no workloads\n');
  t.end();
});

test('a budget that is used up blocks the requests that charge it', (t) => {
  const quota = vision(1);
  const workload = { kind: 'Job', namespace: 'v', name: 'train' };
  quota.execute({ type: 'podStarted', pod: 'p', workload, limits: { cpu: 2, 'nvidia.com/gpu': 4 } });
  const later = quota.status('vision', 3_600_000) as GroupStatus;
  const rows = topShapes([later], quota.charges('vision'), null);
  t.same(
    rows.map(({ fitting }) => [fitting.fits, [...fitting.blockedBy.keys()].includes(`cash/${GPU}`)]),
    [
      [0, true],
      [0, true],
    ],
  );
  t.end();
});
