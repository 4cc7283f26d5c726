import { test } from 'tap';
import { plainRecommendation, recommend, recommendationTable } from '../../src/quota-command/recommend.js';
import { Quota, type GroupStatus } from '../../src/quota/index.js';

const GPU = 'requests.nvidia.com/gpu';

function ask(quota: Quota, name: string, count: number, gpus: number, cpu: number): string {
  const podSets = [{ count, limits: { cpu, 'nvidia.com/gpu': gpus } }];
  return quota.admit({ workload: { kind: 'Job', name }, group: 'g', podSets }).code;
}

function recommended(quota: Quota): ReturnType<typeof recommend> {
  return recommend([quota.status('g') as GroupStatus], quota.charges('g'));
}

test('quota recommend says what of each kind of request still fits: all, fewer pods, a smaller pod or nothing', (t) => {
  const quota = new Quota({ clock: () => 0 });
  quota.createGroup({ name: 'g', hard: { [GPU]: 20, 'limits.cpu': 40 } });
  t.same([ask(quota, 'small', 1, 1, 2), ask(quota, 'wide', 4, 1, 2), ask(quota, 'big', 1, 8, 16)], ['OK', 'OK', 'OK']);
  const rows = recommended(quota);
  // Seven GPUs and 14 cores are left.
  t.same(
    rows.map(({ like, shape }) => [like, shape?.change, shape?.pods]),
    [
      ['Job//small', 'asIs', 1],
      ['Job//wide', 'asIs', 4],
      ['Job//big', 'smaller', 1],
    ],
  );
  t.same(plainRecommendation(rows[2] as (typeof rows)[0]), {
    group: 'g',
    like: 'Job//big',
    pods: 1,
    asked: { [GPU]: '8', 'limits.cpu': '16' },
    recommended: { change: 'smaller', pods: 1, requests: { [GPU]: '7', 'limits.cpu': '14' } },
  });
  t.equal(ask(quota, 'more', 4, 1, 2), 'OK');
  const later = recommended(quota);
  const wide = later.find(({ like }) => like === 'Job//wide');
  t.match(wide?.shape, { change: 'fewer', pods: 3 });
  t.equal(ask(quota, 'recommended', wide?.shape?.pods ?? 0, 1, 2), 'OK', 'what is recommended is admitted');
  t.match(recommendationTable(recommended(quota)), /Job\/\/wide +4 +- +nothing fits/);
  t.end();
});

test('an object counts once, with fewer pods too, and a budget that is used up lets nothing through', (t) => {
  const quota = new Quota({ clock: () => 0 });
  quota.createGroup({ name: 'g', hard: { 'limits.cpu': 10, 'count/jobs.batch': 2, 'cash/limits.cpu': 1 } });
  const workload = { kind: 'Job.batch', name: 'j' };
  const podSets = [{ count: 6, limits: { cpu: 1 } }];
  quota.admit({ workload, group: 'g', podSets, objects: 'jobs.batch' });
  t.match(recommended(quota)[0]?.shape, { change: 'fewer', pods: 4 });
  quota.podStarted({ pod: 'p', workload });
  const later = quota.status('g', 3_600_000) as GroupStatus;
  t.equal(recommend([later], quota.charges('g'))[0]?.shape, null);
  t.end();
});
