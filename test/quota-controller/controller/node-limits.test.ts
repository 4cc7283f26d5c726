/** Limits that are a part of what nodes have. */
import { test } from 'tap';
import { readNode, type Node } from '../../../src/kube/node.js';
import { readGroup } from '../../../src/kube/quota/group-object.js';
import { GROUPS_PATH } from '../../../src/kube/quota/names.js';
import { nodeLimitProblem, readNodeLimits, type ComputedLimits } from '../../../src/kube/quota/node-limit.js';
import { nodeLimitsOf } from '../../../src/quota-controller/controller/node-limits.js';
import { readTree } from '../../../src/quota-command/tree-file.js';
import { eventually } from '../../harness/eventually.js';
import { QuotaCluster } from '../cluster.js';

const GPU = 'requests.nvidia.com/gpu.A100';

const nodeObject = (name: string, allocatable: object, labels: object = {}, spec: object = {}): object => ({
  metadata: { name, labels },
  spec,
  status: { allocatable: { pods: '110', ...allocatable }, conditions: [{ type: 'Ready', status: 'True' }] },
});

const nodes = (...objects: readonly object[]): readonly Node[] => objects.flatMap((object) => readNode(object) ?? []);
const gpus = (name: string, count: number, labels: object = { gpu: 'A100' }): object =>
  nodeObject(name, { cpu: '10', memory: '64Gi', 'nvidia.com/gpu': String(count) }, labels);

test('a limit is a part of what the selected nodes have that take pods, within its bounds', (t) => {
  const all = nodes(
    gpus('a', 8),
    gpus('b', 4, { gpu: 'T4' }),
    nodeObject('cordoned', { cpu: '100' }, { gpu: 'A100' }, { unschedulable: true }),
  );
  const limit = (entry: object): string | undefined =>
    Object.values(nodeLimitsOf(readNodeLimits([entry]), all, {}, 0).limits)[0]?.limit;
  const selected = { matchLabels: { gpu: 'A100' } };
  t.equal(limit({ key: GPU, percent: 40, nodeSelector: selected }), '3', '3.2 GPUs are 3 whole ones');
  t.equal(limit({ key: 'requests.nvidia.com/gpu', percent: 50 }), '6');
  t.equal(limit({ key: 'requests.cpu', percent: 12.5 }), '2500m');
  t.equal(limit({ key: 'limits.memory', percent: 100 }), '128Gi');
  t.equal(limit({ key: 'pods', percent: 10 }), '22');
  t.equal(limit({ key: 'requests.cpu', percent: 10, min: 5 }), '5');
  t.equal(limit({ key: 'requests.cpu', percent: 90, max: '7' }), '7');
  t.equal(limit({ key: 'requests.example.com/none', percent: 90 }), '0');
  t.same(nodeLimitsOf(readNodeLimits([{ key: 'requests.cpu', percent: 50, nodeSelector: selected }]), all, {}, 0), {
    limits: { 'requests.cpu': { limit: '5', total: '10', nodes: 1 } },
    nextAt: null,
  });
  t.end();
});

test('a limit grows at once, shrinks after nodes were missing for a time, and follows its author at once', (t) => {
  const entry = { key: 'requests.cpu', percent: 50, shrinkAfterSeconds: 60 };
  const [two, one] = [nodes(gpus('a', 1), gpus('b', 1)), nodes(gpus('a', 1))];
  const at = (
    now: number,
    present: readonly Node[],
    before: ComputedLimits,
    more: object = {},
  ): ReturnType<typeof nodeLimitsOf> => nodeLimitsOf(readNodeLimits([{ ...entry, ...more }]), present, before, now);
  const full = at(0, two, {}).limits;
  const missing = at(1_000, one, full);
  t.same(missing, {
    limits: {
      'requests.cpu': { limit: '10', total: '20', nodes: 2, shrinksTo: '5', shrinksAt: '1970-01-01T00:01:01Z' },
    },
    nextAt: 61_000,
  });
  t.same(at(30_000, two, missing.limits).limits, full, 'the node came back');
  t.same(at(40_000, one, missing.limits), missing, 'it waits no longer than from the first time');
  t.match(at(61_000, one, missing.limits), { limits: { 'requests.cpu': { limit: '5', nodes: 1 } }, nextAt: null });
  t.match(at(2_000, two, full, { percent: 20 }).limits, { 'requests.cpu': { limit: '4' } }, 'the percentage');
  t.match(at(2_000, one, full, { max: 8 }).limits, { 'requests.cpu': { limit: '8', shrinksTo: '5' } }, 'a bound');
  t.match(at(2_000, nodes(gpus('a', 1), gpus('b', 1), gpus('c', 1)), full).limits, { 'requests.cpu': { limit: '15' } });
  t.end();
});

test('limits that nodes cannot give are refused with what to do', (t) => {
  const problem = (entries: readonly object[], hard = {}): string | null =>
    nodeLimitProblem(readNodeLimits(entries), hard);
  t.equal(problem([{ key: 'requests.cpu', percent: 100, min: 1, max: '2' }]), null);
  t.match(problem([{ key: 'cash/requests.cpu', percent: 1 }]), /fromNodes\[0\].key: .*put it into spec.hard/);
  t.match(problem([{ key: 'count/jobs.batch', percent: 1 }]), /put it into spec.hard/);
  t.match(problem([{ key: 'requests.gpu.cards', percent: 1 }]), /put it into spec.hard/);
  t.match(problem([{ key: 'pods', percent: 1 }], { pods: 3 }), /is in spec.hard too; remove it from one/);
  t.match(
    problem([
      { key: 'pods', percent: 1 },
      { key: 'pods', percent: 2 },
    ]),
    /fromNodes\[1\].key: "pods" is there twice/,
  );
  t.match(problem([{ key: 'pods', percent: 101 }]), /expected 0 to 100, found 101/);
  t.match(problem([{ key: 'pods', percent: 1, min: 'x' }]), /fromNodes\[0\].min: /);
  t.match(problem([{ key: 'pods', percent: 1, max: -1 }]), /fromNodes\[0\].max: .*negative/);
  t.match(problem([{ key: 'pods', percent: 1, min: 3, max: 2 }]), /min 3 is larger than max 2/);
  t.end();
});

test('a group without a computed limit has its minimum, in the cluster and in files', (t) => {
  const spec = { hard: { pods: 5 }, fromNodes: [{ key: 'requests.cpu', percent: 50, min: 2 }] };
  const object = { kind: 'BizGroupResourceQuota', metadata: { name: 'g' }, spec };
  t.same(readGroup(object).spec.hard, { pods: 5, 'requests.cpu': 2 });
  const status = { nodeLimits: { 'requests.cpu': { limit: '8', total: '16', nodes: 2 } } };
  t.same(readGroup({ ...object, status }).spec.hard, { pods: 5, 'requests.cpu': '8' });
  t.match(readTree(JSON.stringify(object)), { ok: true, groups: [{ hard: { pods: 5, 'requests.cpu': 2 } }] });
  t.end();
});

test('groups follow nodes that come and go; running work stays, and nothing new is admitted', async (t) => {
  const quota = await QuotaCluster.start();
  t.teardown(() => quota.stop());
  const half = { key: 'limits.cpu', percent: 50, shrinkAfterSeconds: 1 };
  const create = async (name: string, spec: object): Promise<string> => {
    const body = { metadata: { name }, spec: { hard: {}, ...spec } };
    const answer = await quota.client.request({ method: 'POST', path: GROUPS_PATH, body });
    return answer.ok ? '' : answer.message;
  };
  const hard = (name: string): unknown =>
    (quota.statusOf(name)['hard'] as Readonly<Record<string, string>> | undefined)?.['limits.cpu'];
  quota.server.seed('nodes', gpus('a', 1) as never);
  t.equal(await create('root', { fromNodes: [{ ...half, percent: 100 }] }), '');
  await eventually(() => hard('root') === '10', 'the root to have the cluster');
  t.equal(await create('team', { parentBizGroup: 'root', fromNodes: [half] }), '');
  t.match(await create('both', { hard: { 'limits.cpu': 1 }, fromNodes: [half] }), /InvalidNodeLimit: .*spec.hard too/);
  await eventually(() => hard('team') === '5', 'the team to have half of it');
  t.ok((await quota.deploy('web', 'team', 5, 1)).ok);
  t.notOk((await quota.deploy('more', 'team', 1, 1)).ok);

  quota.server.seed('nodes', gpus('b', 1) as never);
  await eventually(() => hard('root') === '20' && hard('team') === '10', 'both to grow with the new node');
  await eventually(async () => (await quota.deploy('more', 'team', 3, 1)).ok, 'more to be admitted');

  quota.server.remove('nodes', '', 'b');
  await eventually(() => hard('root') === '10' && hard('team') === '5', 'both to shrink');
  await eventually(() => quota.condition('team', 'OverQuota') === 'True', 'the group to be over its quota');
  t.equal(quota.used('team'), '8', 'what runs stays charged');
  t.notOk((await quota.deploy('late', 'team', 1, 1)).ok);
  t.ok((await quota.scale('web', 1)).ok, 'it may shrink');
});
