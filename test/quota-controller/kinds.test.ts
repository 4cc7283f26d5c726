import { test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { KNOWN_KINDS } from '../../src/quota/evaluators/evaluate.js';
import { GROUP_LABEL } from '../../src/quota/index.js';
import { failure } from '../../src/kube/failure.js';
import type { KubeApi } from '../../src/kube/client.js';
import { ServedKinds } from '../../src/quota-controller/served-kinds.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { deployment, QuotaCluster } from './cluster.js';
import { clientTo, quotaServer } from './setting.js';

const ROLLOUTS = {
  metadata: { name: 'rollouts.argoproj.io' },
  spec: {
    group: 'argoproj.io',
    scope: 'Namespaced',
    names: { plural: 'rollouts', singular: 'rollout', kind: 'Rollout', listKind: 'RolloutList' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

test('a kind that is installed later is followed, and what was charged for it is given back when it goes', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ kindsMs: 20 });
  await on.createGroup('team', { 'limits.cpu': 10, 'cash/limits.cpu': 1000 });
  t.match(await on.deploy('web', 'team', 1, 1), { ok: true });
  on.server.seed('customresourcedefinitions', ROLLOUTS);
  await eventually(() => on.server.watches('rollouts').length > 0, 'rollouts to be followed');
  t.match(
    await on.client.request({
      method: 'POST',
      path: '/apis/argoproj.io/v1alpha1/namespaces/default/rollouts',
      body: { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', ...deployment('blue', 'team', 3, 1) },
    }),
    { ok: true },
  );
  await eventually(() => on.used('team') === '4', 'the rollout to be charged');
  const rollout = on.server.read('rollouts', 'default', 'blue');
  t.equal(rollout?.metadata.labels?.[GROUP_LABEL], 'team');
  on.server.remove('customresourcedefinitions', '', 'rollouts.argoproj.io');
  await eventually(() => on.used('team') === '1', 'only the deployment to be charged');
  t.equal(on.server.watches('rollouts').length, 0);
  on.server.seed('customresourcedefinitions', ROLLOUTS);
  await eventually(() => on.server.watches('rollouts').length > 0, 'rollouts to be followed again');
});

test('while the API server does not say what it has, nothing is dropped, and it is asked again', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  const clock = new ManualClock();
  let [asked, isDown] = [0, false];
  const api: KubeApi = {
    request: async (request) => {
      asked++;
      return isDown ? failure('server-error', 'down') : client.request(request);
    },
  };
  const served = await ServedKinds.read({ api, log: silentLog(), timing: clock, evaluators: KNOWN_KINDS });
  const told: (readonly string[])[] = [];
  let failed = 0;
  served.onChange((kinds) => {
    if (failed++ === 0) throw new Error('not now');
    told.push(kinds.map(({ path }) => path));
  });
  served.start();
  const until = (what: string, condition: () => boolean): Promise<unknown> =>
    eventually(() => {
      clock.advance(30_000);
      return condition();
    }, what);
  const first = served.kinds;
  server.seed('customresourcedefinitions', ROLLOUTS);
  isDown = true;
  const before = asked;
  await until('it to be asked in vain', () => asked > before + 60);
  t.equal(served.kinds, first);
  t.equal(failed, 0);
  isDown = false;
  await until('whoever could not follow to be told again', () => told.length > 0);
  t.same(
    told.map((paths) => paths.includes('/apis/argoproj.io/v1alpha1/rollouts')),
    [true],
  );
  const later = asked;
  await until('it to be asked again', () => asked > later + 60);
  t.equal(told.length, 1, 'told once');
  await served.stop();
});
