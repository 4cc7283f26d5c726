import { test } from 'tap';
import { Quota, formatAmount, type Decision, type QuotaEvent } from '../../../../src/quota/index.js';

function withGroup(hard: Record<string, string | number>): Quota {
  const quota = new Quota();
  quota.createGroup({ name: 'g', hard });
  return quota;
}

const used = (quota: Quota, key: string, group = 'g') => formatAmount(key, quota.status(group)?.used.get(key) ?? -1n);
const ref = (name: string, uid?: string) => ({ kind: 'Deployment', namespace: 'ns', name, uid });

test('pods and objects are counted in addition to their requests', (t) => {
  const quota = withGroup({ pods: 5, 'count/deployments.apps': 1 });
  const admit = (name: string, count: number) =>
    quota.admit({ workload: ref(name), group: 'g', objects: 'deployments.apps', podSets: [{ count }] });
  t.equal(admit('a', 6).hints.maxReplicas, 5);
  t.equal(admit('a', 5).code, 'OK');
  t.same(
    admit('b', 0).violations.map(({ key }) => key),
    ['count/deployments.apps'],
  );
  t.equal(admit('a', 0).code, 'OK');
  t.equal(used(quota, 'count/deployments.apps'), '1', 'the object is there without pods');
  t.equal(used(quota, 'pods'), '0');
  t.end();
});

test('every role of a workload is charged and can be scaled', (t) => {
  const quota = withGroup({ 'limits.cpu': 20 });
  const demand = {
    workload: ref('train'),
    group: 'g',
    podSets: [
      { name: 'ps', count: 2, limits: { cpu: 1 } },
      { name: 'worker', count: 4, limits: { cpu: 4 } },
    ],
  };
  t.equal(quota.admit(demand).code, 'OK');
  t.equal(used(quota, 'limits.cpu'), '18');
  t.equal(quota.scale(ref('train'), 5, { podSet: 'worker' }).code, 'QuotaExceeded');
  t.equal(quota.scale(ref('train'), 4, { podSet: 'ps' }).code, 'OK');
  t.equal(quota.scale(ref('train'), 1).code, 'PodSetNotFound', 'which role it is about has to be said');
  t.end();
});

test('an extended resource is charged under all three names', (t) => {
  const quota = withGroup({ 'nvidia.com/gpu': 2, 'requests.nvidia.com/gpu': 3, 'limits.nvidia.com/gpu': 4 });
  const decision = quota.admit({
    workload: ref('a'),
    group: 'g',
    podSets: [{ count: 2, limits: { 'nvidia.com/gpu': 1 } }],
  });
  t.same(
    [...decision.charged].map(([key, amount]) => `${key}=${amount}`),
    ['limits.nvidia.com/gpu=2', 'nvidia.com/gpu=2', 'requests.nvidia.com/gpu=2'],
  );
  t.end();
});

test('typed limits do not apply to an untyped request, unless types are strict', (t) => {
  const demand = { workload: ref('a'), group: 'g', podSets: [{ count: 9, limits: { 'nvidia.com/gpu': 1 } }] };
  t.equal(withGroup({ 'requests.nvidia.com/gpu.A30': 2 }).admit(demand).code, 'OK');
  const strict = new Quota({ policy: { strictTypes: true } });
  strict.createGroup({ name: 'g', hard: { 'requests.nvidia.com/gpu.A30': 2 } });
  t.equal(strict.admit(demand).code, 'TypeRequired');
  t.equal(strict.admit({ ...demand, types: { gpu: 'T4' } }).code, 'OK');
  t.end();
});

test('an image may change in a group that now limits a resource the workload does not state', (t) => {
  const quota = withGroup({ 'limits.memory': '8Gi' });
  const demand = { workload: ref('a'), group: 'g', podSets: [{ count: 2, limits: { memory: '1Gi' } }] };
  quota.admit(demand);
  quota.updateGroup({ name: 'g', hard: { 'limits.memory': '8Gi', 'limits.cpu': 4 } });
  t.equal(quota.admit(demand).code, 'OK');
  t.equal(quota.scale(ref('a'), 3).code, 'MustSpecify');
  t.end();
});

test('a new key counts existing workloads', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  quota.admit({ workload: ref('a'), group: 'g', podSets: [{ count: 2, limits: { cpu: 1, memory: '1Gi' } }] });
  quota.updateGroup({ name: 'g', hard: { 'limits.cpu': 10, 'limits.memory': '3Gi' } });
  t.equal(used(quota, 'limits.memory'), '2Gi');
  t.end();
});

test('a new object with the name of an old one is another workload', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  const admit = (uid: string, count: number) =>
    quota.admit({ workload: ref('a', uid), group: 'g', podSets: [{ count, limits: { cpu: 1 } }] });
  admit('first', 8);
  t.equal(admit('second', 9).code, 'OK', 'its charge takes the place of the old one');
  t.equal(quota.release(ref('a', 'first')).code, 'NotManaged', 'the end of the old one comes late');
  t.equal(used(quota, 'limits.cpu'), '9');
  t.equal(quota.release(ref('a', 'second')).code, 'OK');
  t.equal(used(quota, 'limits.cpu'), '0');
  t.end();
});

test('a workload without replicas may leave its group', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  quota.admit({ workload: ref('a'), group: 'g', podSets: [{ count: 0, limits: { cpu: 1 } }] });
  t.equal(quota.admit({ workload: ref('a'), group: '', podSets: [] }).code, 'NotManaged');
  t.equal(quota.deleteGroup('g').code, 'OK');
  t.end();
});

test('an autoscaler may reserve its maximum', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  const demand = { workload: ref('a'), group: 'g', podSets: [{ count: 2, limits: { cpu: 1 } }] };
  quota.admit(demand);
  t.equal(quota.checkHpa(ref('a'), 11, 'reserve').hints.maxReplicas, 10);
  t.equal(quota.checkHpa(ref('a'), 8, 'reserve').code, 'OK');
  t.equal(used(quota, 'limits.cpu'), '8');
  quota.scale(ref('a'), 7);
  quota.admit(demand);
  t.equal(used(quota, 'limits.cpu'), '8', 'whatever its replicas are');
  quota.checkHpa(ref('a'), 0, 'reserve');
  t.equal(used(quota, 'limits.cpu'), '2');
  t.end();
});

test('a group that is being deleted admits no growth and no child', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  quota.admit({ workload: ref('a'), group: 'g', podSets: [{ count: 2, limits: { cpu: 1 } }] });
  quota.execute({ type: 'terminateGroup', name: 'g' });
  t.equal(quota.scale(ref('a'), 3).code, 'GroupTerminating');
  t.equal(quota.scale(ref('a'), 1).code, 'OK');
  t.equal(quota.createGroup({ name: 'c', parent: 'g', hard: { 'limits.cpu': 1 } }).code, 'ParentTerminating');
  t.same(quota.status('g')?.conditions, [{ type: 'Terminating', keys: [] }]);
  t.end();
});

test('a refusal names every key without room, in the wording of Kubernetes', (t) => {
  const quota = withGroup({ 'limits.cpu': 10, 'limits.memory': '8Gi' });
  quota.admit({ workload: ref('a'), group: 'g', podSets: [{ count: 6, limits: { cpu: 1, memory: '1Gi' } }] });
  const decision = quota.admit({
    workload: ref('b'),
    group: 'g',
    podSets: [{ count: 5, limits: { cpu: 1, memory: '1Gi' } }],
  });
  t.equal(
    decision.message,
    'QuotaExceeded: exceeded quota: g, requested: limits.cpu=5,limits.memory=5Gi, used: limits.cpu=6,limits.memory=6Gi, limited: limits.cpu=10,limits.memory=8Gi, short by: limits.cpu=1,limits.memory=3Gi; at most 2 replicas fit',
  );
  t.same(decision.violations[1], {
    group: 'g',
    key: 'limits.memory',
    hard: 8n * 2n ** 30n,
    used: 6n * 2n ** 30n,
    requested: 5n * 2n ** 30n,
    short: 3n * 2n ** 30n,
  });
  t.end();
});

test('an explanation shows every key and what would fit', (t) => {
  const quota = withGroup({
    'requests.nvidia.com/gpu': 8,
    'requests.nvidia.com/gpu.A30': 2,
    'requests.nvidia.com/gpu.T4': 6,
    'cash/requests.nvidia.com/gpu': 100,
  });
  const demand = {
    workload: ref('a'),
    group: 'g',
    types: { gpu: 'A30' },
    podSets: [{ count: 4, limits: { 'nvidia.com/gpu': 1 } }],
  };
  const explanation = quota.explain(demand);
  t.equal(explanation.decision.code, 'QuotaExceeded');
  t.equal(explanation.maxReplicas, 2);
  t.same(explanation.otherTypes, { gpu: ['T4'] });
  t.same(
    explanation.keys.map(({ key, requested, room, fits }) => [key, Number(requested), fits && room > 0n]),
    [
      ['requests.nvidia.com/gpu', 4, true],
      ['requests.nvidia.com/gpu.A30', 4, false],
      ['requests.nvidia.com/gpu.T4', 0, true],
      ['cash/requests.nvidia.com/gpu', 4, true],
    ],
  );
  t.equal(used(quota, 'requests.nvidia.com/gpu'), '0', 'nothing is charged for asking');
  t.end();
});

test('a simulation reports the result of a script and changes nothing', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  const admit = (name: string, count: number) => ({
    command: { type: 'admit' as const, workload: ref(name), group: 'g', podSets: [{ count, limits: { cpu: 1 } }] },
  });
  const { decisions, events, changed } = quota.simulate([admit('a', 6), admit('b', 6), admit('c', 4)]);
  t.same(
    decisions.map(({ code }) => code),
    ['OK', 'QuotaExceeded', 'OK'],
  );
  t.same(
    events.map(({ type }) => type),
    ['admitted', 'denied', 'admitted'],
  );
  t.same(
    changed.map(({ name, used: after }) => [name, after.get('limits.cpu')]),
    [['g', 10_000n]],
  );
  t.equal(used(quota, 'limits.cpu'), '0');
  t.equal(quota.revision, 1);
  t.end();
});

test('the groups that a simulation changes stay as they were when they are read later', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  for (const name of ['a', 'b'])
    quota.createGroup({ name, parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 5 } });
  const admit = (name: string, group: string, count: number) => ({
    type: 'admit' as const,
    workload: ref(name),
    group,
    podSets: [{ count, limits: { cpu: 1 } }],
  });
  const script = [{ command: admit('x', 'a', 6) }];
  const [later, now] = [quota.simulate(script), quota.simulate(script).changed];
  quota.execute(admit('y', 'b', 2));
  quota.execute(admit('z', 'root', 0));
  quota.reserve({ workload: ref('r'), group: 'root', podSets: [{ count: 0 }] }, 1000);
  quota.createGroup({ name: 'c', parent: 'root', hard: {} });
  quota.createGroup({ name: 'd', parent: 'a', hard: { 'limits.cpu': 1 } });
  t.not(quota.status('root')?.workloads, 0);
  t.not(quota.status('root')?.reservations, 0);
  t.same(later.changed, now);
  t.equal(later.changed, later.changed);
  t.same(
    now.map(({ name, room }) => [name, room.get('limits.cpu')]),
    [
      ['a', 4_000n],
      ['root', 4_000n],
    ],
  );
  t.end();
});

test('listeners receive every event with its actor', (t) => {
  const quota = new Quota();
  const events: QuotaEvent[] = [];
  const end = quota.on((event) => events.push(event));
  quota.execute({ type: 'createGroup', name: 'g', hard: { 'limits.cpu': 2 }, actor: 'alice' }, 7);
  quota.execute({ type: 'admit', workload: ref('a'), group: 'g', podSets: [{ count: 1, limits: { cpu: 1 } }] }, 8);
  quota.execute({ type: 'admit', workload: ref('b'), group: 'g', podSets: [{ count: 2, limits: { cpu: 1 } }] }, 8);
  end();
  quota.execute({ type: 'release', workload: ref('a') }, 9);
  t.match(events, [
    { type: 'groupCreated', at: 7, group: 'g', actor: 'alice', after: new Map([['limits.cpu', 2000n]]) },
    { type: 'admitted', at: 8, group: 'g', subject: 'Deployment/ns/a', amounts: new Map([['limits.cpu', 1000n]]) },
    { type: 'denied', at: 8, group: 'g', subject: 'Deployment/ns/b', code: 'QuotaExceeded' },
  ]);
  t.equal(events.length, 3);
  t.end();
});

test('a limit that other limits of the group make unreachable is accepted with a warning', (t) => {
  const decision: Decision = new Quota().createGroup({
    name: 'g',
    hard: { 'limits.cpu': 10, 'limits.cpu.A4': 100, 'limits.cpu.A3': 5 },
  });
  t.same(
    decision.warnings.map(({ code, key }) => [code, key]),
    [['Unreachable', 'limits.cpu.A4']],
  );
  t.end();
});

test('a recount finds and corrects counters that differ', (t) => {
  const quota = withGroup({ 'limits.cpu': 10 });
  for (let at = 0; at < 200; at++)
    quota.admit({
      workload: ref(`w${at % 7}`),
      group: 'g',
      podSets: [{ count: 1 + (at % 2), limits: { cpu: '500m' } }],
    });
  t.same(quota.refresh(), { groups: 1, workloads: 7, drift: [] });
  const slices = quota.refreshSlices(1);
  let steps = 1;
  while (slices.next().done !== true) steps++;
  t.equal(steps, 2);
  t.end();
});

test('the hint of replicas is right when the number of objects is exceeded', (t) => {
  const quota = new Quota({ clock: () => 0 });
  quota.createGroup({ name: 'g', hard: { 'count/jobs.batch': 1, 'limits.cpu': 100 } });
  const job = (name: string, count: number) => ({
    workload: { kind: 'Job.batch', name },
    group: 'g',
    objects: 'jobs.batch',
    podSets: [{ count, limits: { cpu: 1 } }],
  });
  t.equal(quota.admit(job('a', 2)).code, 'OK');
  const refused = quota.admit(job('b', 2));
  t.equal(refused.code, 'QuotaExceeded');
  t.equal(refused.hints.maxReplicas, 0, 'no number of replicas makes room for a second Job');
  t.equal(quota.admit(job('a', 200)).hints.maxReplicas, 100, 'the Job that is there may grow');
  t.end();
});
