import { test, type Test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { EvictionLimitWatch } from '../../src/scheduler/eviction-limit-watch.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import type { ResourceType } from '../harness/api-server/resource-type.js';
import { until } from '../harness/eventually.js';
import { apiServer, clientOf, QUICK } from '../kube/setting.js';

const groups = (group: string, version: string): ResourceType => ({
  ...{ group, version, plural: 'podgroups', kind: 'PodGroup', namespaced: true },
});

const KUBERNETES_1_36 = groups('scheduling.k8s.io', 'v1alpha2');
const COSCHEDULING = groups('scheduling.x-k8s.io', 'v1alpha1');

/** A budget for all pods, one eviction allowed. */
const BUDGET = {
  metadata: { namespace: 'default', name: 'b', generation: 1 },
  spec: { selector: {} },
  status: { disruptionsAllowed: 1, observedGeneration: 1, disruptedPods: { gone: '2026-11-21T08:00:00Z' } },
};

test('the watch follows disruption budgets and the pod groups of both APIs', async (t) => {
  const server = await apiServer(t);
  server.define(KUBERNETES_1_36, COSCHEDULING);
  server.seed('poddisruptionbudgets', BUDGET);
  server.seed('podgroups.scheduling.k8s.io', {
    metadata: { namespace: 'default', name: 'gang' },
    spec: { schedulingPolicy: { gang: { minCount: 4 } } },
  });
  server.seed('podgroups.scheduling.k8s.io', {
    metadata: { namespace: 'default', name: 'basic' },
    spec: { schedulingPolicy: { basic: {} } },
  });
  server.seed('podgroups.scheduling.x-k8s.io', {
    metadata: { namespace: 'team', name: 'train' },
    spec: { minMember: 2 },
  });
  const watch = new EvictionLimitWatch(settings(t, server));
  t.teardown(() => watch.stop());
  watch.start();
  const [budget] = await until('the budgets to be known', async () => watch.disruptionBudgets() ?? false);
  t.match(budget, { key: 'default/b', allowed: 1 });
  t.same([...(budget?.disrupted ?? [])], ['gone']);
  const minimums = await until(
    'both groups with a minimum to be known',
    async () => watch.groupMinimums().length === 2 && watch.groupMinimums(),
  );
  t.same(minimums, [
    { keys: ['default/gang'], minimum: 4 },
    { keys: ['team/scheduling.x-k8s.io/pod-group/train', 'team/pod-group.scheduling.sigs.k8s.io/train'], minimum: 2 },
  ]);
  server.edit('poddisruptionbudgets', 'default', 'b', (known) => ({ ...known, status: { disruptionsAllowed: 0 } }));
  await until('the change of the budget to be known', async () => watch.disruptionBudgets()?.[0]?.allowed === 0);
});

test('without the right to list budgets they stay unknown, and without PodGroup APIs there are no minimums', async (t) => {
  const server = await apiServer(t, { authorize: (_, { type }) => type.plural !== 'poddisruptionbudgets' });
  const watch = new EvictionLimitWatch(settings(t, server));
  t.teardown(() => watch.stop());
  watch.start();
  const refused = () => server.requests.filter(({ resource }) => resource === 'poddisruptionbudgets').length;
  await until('the list to be asked for twice', async () => refused() >= 2);
  t.equal(watch.disruptionBudgets(), null);
  t.same(watch.groupMinimums(), []);
});

function settings(t: Test, server: ApiServer): ConstructorParameters<typeof EvictionLimitWatch>[0] {
  return { client: clientOf(t, server.url), clock: systemClock, log: silentLog(), timing: QUICK };
}
