import { test, type Test } from 'tap';
import { ClaimTemplates, LAST_USED_KEY } from '../../src/claim-webhook/claim-templates.js';
import { reviewPod } from '../../src/claim-webhook/pod-review.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import type { Review } from '../../src/kube/admission/review.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import { eventually } from '../harness/eventually.js';
import { clientTo } from '../quota-controller/setting.js';
import { container, pod, type TestPod } from './pods.js';

const HOUR_MS = 3_600_000;

async function setting(t: Test) {
  const server = new ApiServer();
  await server.start();
  server.define({
    group: 'resource.k8s.io',
    version: 'v1',
    plural: 'resourceclaimtemplates',
    kind: 'ResourceClaimTemplate',
    namespaced: true,
  });
  const client = clientTo(server.url);
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  let now = Date.parse('2026-01-01T00:00:00Z');
  const templates = new ClaimTemplates(client, { ...systemClock, now: () => now }, silentLog());
  const review = (object: TestPod, dryRun = false): Review => ({
    uid: 'u',
    operation: 'CREATE',
    apiGroup: '',
    resource: 'pods',
    subresource: '',
    namespace: 'team',
    name: '',
    dryRun,
    object,
    oldObject: null,
    user: 'tester',
  });
  return {
    server,
    templates,
    later: (ms: number) => (now += ms),
    create: (object: TestPod, dryRun?: boolean) =>
      reviewPod(review(object, dryRun), true, { api: client, templates, gpuMemoryBytes: null }),
    convert: (object: TestPod) =>
      reviewPod(review(object), false, { api: client, templates, gpuMemoryBytes: 80 * 2 ** 30 }),
    names: () => server.all('resourceclaimtemplates').map(({ metadata }) => metadata.name),
    writes: () =>
      server.requests.filter(({ resource, verb }) => resource === 'resourceclaimtemplates' && verb !== 'get').length,
  };
}

test('equal pods share one template, which is written once an hour', async (t) => {
  const on = await setting(t);
  t.match(await on.create(pod([container('main', 30, 16)])), { allowed: true, patch: Array });
  t.match(await on.create(pod([container('other', 30, 16)])), { allowed: true });
  t.equal(on.names().length, 1);
  t.equal(on.writes(), 1);
  on.later(2 * HOUR_MS);
  t.match(await on.create(pod([container('main', 30, 16)])), { allowed: true });
  t.equal(on.writes(), 2);
  t.match(on.server.all('resourceclaimtemplates')[0]?.metadata.annotations, {
    [LAST_USED_KEY]: '2026-01-01T02:00:00Z',
  });
});

test('nvidia.com/gpu becomes what the annotation of the pod or of its namespace says, also as a claim', async (t) => {
  const on = await setting(t);
  const wanted = () => pod([{ name: 'main', resources: { limits: { 'nvidia.com/gpu': 1 } } }]);
  on.server.seed('namespaces', { metadata: { name: 'team' } });
  t.same(await on.convert(wanted()), { allowed: true }, 'without an annotation the request stays');
  on.server.seed('namespaces', {
    metadata: { name: 'team', annotations: { 'tencent.com/gpu-share': 'cores=25,memory=10%' } },
  });
  t.match(await on.convert(wanted()), {
    patch: [{ value: { limits: { 'tencent.com/vcuda-core': 25, 'tencent.com/vcuda-memory': 32 } } }],
  });
  t.equal(on.names().length, 0);
  const own = wanted();
  own.metadata.annotations = { 'tencent.com/gpu-share': 'cores=30,memory=4GiB' };
  t.match(await on.create(own), { allowed: true, patch: [{}, { value: { claims: [{}] } }, {}] });
  t.match(on.names(), [/^vcuda-30-16-/]);
  own.metadata.annotations = { 'tencent.com/gpu-share': 'half' };
  t.match(await on.create(own), {
    allowed: false,
    message: /annotation tencent.com\/gpu-share is "half"; expected whole, or/,
  });
});

test('a dry run creates no template, and a refused pod none either', async (t) => {
  const on = await setting(t);
  t.match(await on.create(pod([container('main', 30, 16)]), true), { allowed: true, patch: Array });
  t.match(await on.create(pod([container('good', 30, 16), container('bad', 150, 0)])), {
    allowed: false,
    code: 422,
    message: /^the request cannot be converted into resource claims: container bad: /,
  });
  t.same(on.names(), []);
});

test('a template of the same name that somebody else made is refused', async (t) => {
  const on = await setting(t);
  await on.create(pod([container('main', 30, 16)]));
  const [name = ''] = on.names();
  on.server.remove('resourceclaimtemplates', 'team', name);
  on.server.seed('resourceclaimtemplates', { metadata: { name, namespace: 'team' }, spec: {} });
  t.match(await on.create(pod([container('main', 30, 16)])), {
    allowed: false,
    message: /ResourceClaimTemplate team\/vcuda-30-16-.* exists, but gpu-manager did not create it/,
  });
});

test('a template is deleted a day after its last use, unless a pod names it', async (t) => {
  const on = await setting(t);
  await on.create(pod([container('main', 30, 16)]));
  await on.create(pod([container('main', 20, 8)]));
  on.server.seed('resourceclaimtemplates', { metadata: { name: 'own', namespace: 'team' }, spec: {} });
  const named = on.names().find((name) => name?.startsWith('vcuda-30') === true) ?? '';
  on.server.seed('pods', {
    metadata: { name: 'pod', namespace: 'team' },
    spec: { resourceClaims: [{ name: 'vcuda-0', resourceClaimTemplateName: named }] },
  });
  on.later(23 * HOUR_MS);
  await on.templates.sweep();
  t.equal(on.names().length, 3);
  on.later(2 * HOUR_MS);
  await on.templates.sweep();
  t.same(on.names().sort(), ['own', named].sort());
});

test('a template that is used while it is swept stays', async (t) => {
  const on = await setting(t);
  await on.create(pod([container('main', 30, 16)]));
  on.later(30 * HOUR_MS);
  // The sweep has its list of old templates and waits for the pods.
  const slow = on.server.inject({ verb: 'list', resource: 'pods' }, { do: 'delay', ms: 200 });
  const sweeping = on.templates.sweep();
  await eventually(() => slow.hits > 0, 'the sweep to list the pods');
  await on.create(pod([container('main', 30, 16)]));
  await sweeping;
  t.equal(on.names().length, 1);
});

test('a wrong value and an almost right key of an annotation are refused', async (t) => {
  const on = await setting(t);
  const annotated = (annotations: Record<string, string>): TestPod => {
    const object = pod([container('main', 30, 16)]);
    object.metadata.annotations = annotations;
    return object;
  };
  for (const review of [on.create, on.convert]) {
    t.match(await review(annotated({ 'tencent.com/use-gpu-modle': 'A100' })), {
      allowed: false,
      message: 'annotation tencent.com/use-gpu-modle has no meaning; write tencent.com/use-gpu-model',
    });
    t.match(await review(annotated({ 'tencent.com/gpu-policy': 'mutex' })), { allowed: false, message: /gpu-policy/ });
  }
});
