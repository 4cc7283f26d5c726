import { test } from 'tap';
import type { ApiRequest } from '../../harness/api-server/api-request.js';
import { eventually } from '../../harness/eventually.js';
import { DEFAULT_ARBITRATOR_POLICY, KNOWN_KINDS } from '../../../src/quota/index.js';
import type { KubeApi } from '../../../src/kube/client.js';
import { servedPolicy } from '../../../src/quota-controller/arbitrator/served-policy.js';
import { stopOf, type Stop } from '../../../src/quota-controller/give-back/workload-stop.js';
import { workloadPriority } from '../../../src/quota-controller/workloads/workload-priority.js';
import { resourceOf } from '../../../src/quota/internal.js';
import type { ServedKind } from '../../../src/quota-controller/workloads/kinds.js';
import { ArbitratedCluster } from './arbitrated-cluster.js';
import { deployment, QuotaCluster } from '../cluster.js';
import { manifestsOf } from '../setting.js';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** The permissions in etc/quota/arbitrator.yaml: `list pods`, `create pods/eviction`. */
function allowedBy(...roles: readonly string[]): ReadonlySet<string> {
  const chosen = manifestsOf('etc/quota/arbitrator.yaml').filter(
    ({ kind, metadata }) => kind === 'ClusterRole' && roles.includes(metadata.name ?? ''),
  );
  return new Set(
    chosen.flatMap(({ rules }) =>
      (rules as readonly Rule[]).flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
        ),
      ),
    ),
  );
}

const asked = ({ verb, type, subresource }: ApiRequest): string =>
  `${verb} ${type.group}/${type.plural}${subresource === '' ? '' : `/${subresource}`}`;

test('the roles allow exactly what the arbitrator does', async (t) => {
  const allowed = allowedBy('gpu-manager-quota-arbitrator', 'gpu-manager-quota-reclaim');
  t.ok(allowed.size > 10);
  const done = new Set<string>();
  const on = await ArbitratedCluster.start({
    authorize: (_, request) => done.add(asked(request)) && allowed.has(asked(request)),
  });
  t.teardown(() => on.stop());
  // Reviews read the priorities of workloads that wait in a group that preempts.
  const kinds = KNOWN_KINDS.filter(({ kind }) => kind === 'Deployment').map((evaluator): ServedKind => {
    return { evaluator, resource: 'deployments', path: '', shortNames: [], scalePath: null };
  });
  const waits = { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment('waits', 'team', 1, 1) };
  await workloadPriority(on.client, kinds, waits);
  on.addNode('node1', { cpu: '2' });
  on.addNamespaces('first', 'second', 'third');
  on.addConsumer('first', {});
  on.addPod('first', 'p1', { cpu: '1' });
  on.addPod('first', 'p2', { cpu: '1' });
  on.server.seed('namespaces', { metadata: { name: 'fourth', labels: { area: 'app' } } });
  await on.arbitrate('on', {}, [{ namespaceSelector: { matchLabels: { area: 'app' } }, spec: { weight: 1 } }]);
  const notice = async (): Promise<void> => {
    on.addPod('second', 'q1', { cpu: '1' }, { node: null });
    await eventually(() => on.statusOf('first').reclaimAt !== undefined, 'the notice');
  };
  // A repeated event increments its count.
  for (const count of [1, 2]) {
    await notice();
    on.server.remove('pods', 'second', 'q1');
    await eventually(() => on.events('ReclaimEnded')[0]?.['count'] === count, 'the end of the notice');
  }
  await notice();
  on.server.remove('namespaces', '', 'third');
  on.seconds = 30;
  await eventually(
    () => on.events('Reclaimed').length === 1 && on.server.read('allocations', '', 'third') === null,
    'everything to be done',
  );
  t.same([...done].sort(), [...allowed].sort());
});

test('the role for groups that reclaim and its policy allow stopping each kind that is stopped, and nothing else', (t) => {
  const stopped = (how: Stop): readonly string[] =>
    KNOWN_KINDS.filter((evaluator) => stopOf({ evaluator }) === how)
      .map((evaluator) => `${evaluator.apiGroup}/${resourceOf(evaluator)}`)
      .sort();
  t.same(
    [...allowedBy('gpu-manager-quota-give-back')].sort(),
    [
      ...stopped('suspend').map((resource) => `patch ${resource}`),
      ...stopped('scale').map((resource) => `patch ${resource}/scale`),
    ].sort(),
  );
  const policy = manifestsOf('etc/admission/quota.yaml').find(
    ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === 'gpu-manager-quota-workloads',
  );
  const { matchConstraints } = policy?.spec as {
    readonly matchConstraints: { readonly resourceRules: readonly Omit<Rule, 'verbs'>[] };
  };
  const [rule] = matchConstraints.resourceRules;
  t.same(
    stopped('suspend').filter((resource) => {
      const [group = '', name = ''] = resource.split('/');
      return rule?.apiGroups.includes(group) === true && rule.resources.includes(name);
    }),
    stopped('suspend'),
  );
  t.end();
});

test('the first role suffices to plan and allows no writes', async (t) => {
  const allowed = allowedBy('gpu-manager-quota-arbitrator');
  t.same(
    [...allowed].filter((each) => !/^(list|watch) /.test(each)),
    [],
  );
  const on = await ArbitratedCluster.start({ authorize: (_, request) => allowed.has(asked(request)) });
  t.teardown(() => on.stop());
  on.addNode('node1', { cpu: '2' });
  on.addPod('first', 'p1', { cpu: '1' });
  on.addPod('first', 'p2', { cpu: '1' });
  on.addPod('second', 'q1', { cpu: '1' }, { node: null });
  await on.arbitrate('plan', { graceMs: 0 });
  await eventually(() => on.logged.some(({ message }) => /would be evicted/.test(message)), 'the plan');
});

const ON = { mode: 'on', periodMs: 5, policy: DEFAULT_ARBITRATOR_POLICY } as const;

test('a service without an arbitrator divides nothing and watches nothing for it', async (t) => {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  on.server.seed('namespaces', { metadata: { name: 'team' } });
  await eventually(() => on.services.some(({ leading }) => leading), 'a leader');
  await on.createGroup('team', { 'limits.cpu': 10 });
  await eventually(() => on.used('team') === '0', 'the leader to work');
  t.same(
    on.server.requests.filter(({ resource }) =>
      ['consumers', 'allocations', 'namespaces', 'poddisruptionbudgets', 'resourcequotas'].includes(resource),
    ),
    [],
  );
});

test('one of two replicas divides the cluster, and the other one takes over when it stops', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  const replicas = [await on.join({ arbitrator: ON }), await on.join({ arbitrator: ON })];
  on.server.seed('nodes', {
    metadata: { name: 'node1' },
    status: { allocatable: { cpu: '8' }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  on.server.seed('namespaces', { metadata: { name: 'team' } });
  const waits = (name: string): unknown =>
    on.server.seed('pods', {
      metadata: { name, namespace: 'team' },
      spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] },
    });
  const deserves = (amount: string): Promise<unknown> =>
    eventually(
      () =>
        (
          on.server.read('allocations', '', 'team')?.status as
            { readonly deserved?: Readonly<Record<string, string>> } | undefined
        )?.deserved?.['cpu'] === amount,
      `${amount} cores`,
    );
  waits('one');
  await deserves('1');
  t.equal(on.server.watches('consumers').length, 1, 'one of them looks');
  const leader = replicas.find(({ leading }) => leading);
  if (leader !== undefined) await on.leave(leader);
  waits('two');
  await deserves('2');
});

test('old API servers are asked in the versions that they serve', async (t) => {
  const server = (versions: readonly string[], eviction: string | null): KubeApi => ({
    request: async ({ path }) => ({
      ok: true,
      body:
        path === '/api/v1'
          ? {
              resources: [
                { name: 'pods' },
                ...(eviction === null
                  ? []
                  : [{ name: 'pods/eviction', group: 'policy', version: eviction, kind: 'Eviction' }]),
              ],
            }
          : { versions: versions.map((version) => ({ groupVersion: `policy/${version}`, version })) },
    }),
  });
  t.same(
    await servedPolicy(server(['v1beta1'], 'v1beta1')),
    { budgets: 'v1beta1', eviction: 'policy/v1beta1' },
    '1.20',
  );
  t.same(
    await servedPolicy(server(['v1', 'v1beta1'], 'v1beta1')),
    { budgets: 'v1', eviction: 'policy/v1beta1' },
    '1.21',
  );
  t.same(await servedPolicy(server(['v1'], 'v1')), { budgets: 'v1', eviction: 'policy/v1' }, '1.25');
});
