/** Webhooks that a Job registers: the token of the programs that serve them has no right to webhook configurations. */
import { Agent } from 'node:http';
import { test, type Test } from 'tap';
import { registerClaimWebhooks } from '../../src/claim-webhook/run.js';
import { systemClock } from '../../src/host/clock.js';
import { silentLog } from '../../src/host/log.js';
import { KubeClient } from '../../src/kube/client.js';
import { SecretPaths } from '../../src/kube/admission/secret-paths.js';
import { webhookIdentity, type Registration, type WebhookConfig } from '../../src/kube/admission/webhook-identity.js';
import { registerQuota } from '../../src/quota-controller/run.js';
import { accountRights } from '../harness/api-server/account-rights.js';
import { ApiServer } from '../harness/api-server/api-server.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { CRDS, manifestsOf } from '../quota-controller/setting.js';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const MINUTE = 60_000;
const DAY = 86_400_000;

/** A cluster with what the manifests make in it, and clients with the rights of its accounts. */
async function cluster(t: Test, ...files: readonly string[]) {
  const objects = files.flatMap(manifestsOf);
  const accounts = [
    ...new Set(objects.filter(({ kind }) => kind === 'ServiceAccount').map((one) => one.metadata.name ?? '')),
  ];
  const server = new ApiServer({
    tokens: new Map(accounts.map((name) => [name, `system:serviceaccount:kube-system:${name}`])),
    authorize: accountRights(objects),
  });
  await server.start();
  t.teardown(() => server.stop());
  for (const definition of CRDS) server.seed('customresourcedefinitions', definition);
  const seeded: Readonly<Record<string, string>> = {
    Secret: 'secrets',
    ValidatingWebhookConfiguration: 'validatingwebhookconfigurations',
    MutatingWebhookConfiguration: 'mutatingwebhookconfigurations',
  };
  for (const object of objects) {
    const resource = seeded[object.kind ?? ''];
    if (resource !== undefined) server.seed(resource, object);
  }
  const connect = (account: string): KubeClient => {
    const agent = new Agent({ keepAlive: true });
    const client = new KubeClient({
      credentials: {
        server: new URL(server.url),
        access: async () => ({ agent, headers: { authorization: `Bearer ${account}` } }),
        distrust: () => undefined,
        close: () => agent.destroy(),
      },
      clock: systemClock,
      userAgent: 'test',
    });
    t.teardown(() => client.close());
    return client;
  };
  return { server, connect };
}

function config(program: string, registration: Registration): WebhookConfig & { readonly unlabelled: 'Ignore' } {
  return {
    address: '127.0.0.1',
    port: 0,
    probePort: null,
    kubeconfig: null,
    namespace: 'kube-system',
    service: program,
    url: null,
    tls: null,
    clients: null,
    registration,
    tokenReview: false,
    unlabelled: 'Ignore',
  };
}

const webhooksOf = (server: ApiServer, name: string, kind = 'validatingwebhookconfigurations') =>
  (server.read(kind, '', name)?.['webhooks'] ?? []) as readonly {
    readonly name: string;
    readonly rules: readonly { readonly resources: readonly string[] }[];
    readonly clientConfig: { readonly service: { readonly path: string }; readonly caBundle: string };
    readonly namespaceSelector?: object;
  }[];

const PROGRAMS = [
  ['gpu-manager-quota', 'etc/quota/deployment.yaml', 'etc/quota/registration.yaml'],
  ['gpu-manager-claims', 'etc/dra/webhook.yaml', 'etc/dra/webhook-registration.yaml'],
] as const;

for (const [program, plain, byJob] of PROGRAMS)
  test(`${program}: the account of the Job may do what its run does, and that of the replicas no longer writes webhooks`, async (t) => {
    const run = program === 'gpu-manager-quota' ? registerQuota : registerClaimWebhooks;
    const { server, connect } = await cluster(t, plain, byJob);
    await run(config(program, 'once'), silentLog(), async () => connect(`${program}-registration`));
    for (const kind of ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'])
      t.match(webhooksOf(server, program, kind)[0]?.clientConfig, {
        service: { name: program, namespace: 'kube-system', path: /^\/[0-9a-f]{64}\// },
        caBundle: /./,
      });
    const path = `${CONFIGURATIONS}/${program}`;
    const body = { ...(server.read('validatingwebhookconfigurations', '', program) as KubeObject), webhooks: [] };
    const written = await connect(program).request({ method: 'PUT', path, body });
    t.match(written, { ok: false, code: 'forbidden' });
    t.match(await connect(program).request({ method: 'GET', path }), { ok: false, code: 'forbidden' });

    const before = await cluster(t, plain);
    const put = await before.connect(program).request({
      method: 'PUT',
      path,
      body: { ...(before.server.read('validatingwebhookconfigurations', '', program) as KubeObject), webhooks: [] },
    });
    t.ok(put.ok, 'without the Job the replicas write them');
  });

test('the Job registers kinds and namespaces that policy and groups name at its run', async (t) => {
  const { server, connect } = await cluster(t, 'etc/quota/deployment.yaml', 'etc/quota/registration.yaml');
  const run = () =>
    registerQuota(config('gpu-manager-quota', 'once'), silentLog(), async () =>
      connect('gpu-manager-quota-registration'),
    );
  await run();
  const named = (name: string) => webhooksOf(server, 'gpu-manager-quota').find((webhook) => webhook.name === name);
  const kinds = named('workloads.quota.gpu-manager.io')?.rules.flatMap(({ resources }) => resources) ?? [];
  t.ok(kinds.includes('pods') && kinds.includes('deployments'));
  t.equal(named('default-0.quota.gpu-manager.io'), undefined);
  server.seed('bizgroupresourcequotas', {
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'BizGroupResourceQuota',
    metadata: { name: 'team' },
    spec: { defaultFor: { namespaces: ['team-a'] } },
  });
  server.seed('quotapolicies', {
    apiVersion: 'quota.gpu-manager.io/v1',
    kind: 'QuotaPolicy',
    metadata: { name: 'default' },
    spec: { requireLabel: { namespaceSelector: { matchLabels: { team: 'x' } } } },
  });
  await run();
  t.match(JSON.stringify(named('default-0.quota.gpu-manager.io')?.namespaceSelector), /team-a/);
  t.match(named('unlabelled.quota.gpu-manager.io')?.namespaceSelector, { matchLabels: { team: 'x' } });
});

test('a path that the Job replaces stays valid until the Job has registered the next one, however late', async (t) => {
  const { server, connect } = await cluster(t, 'etc/dra/webhook.yaml', 'etc/dra/webhook-registration.yaml');
  const clock = new ManualClock(Date.now());
  const log = silentLog();
  const names = { certificate: 'gpu-manager-claims-tls', paths: 'gpu-manager-claims-webhook', authority: 'claims' };
  const replica = webhookIdentity(
    config('gpu-manager-claims', 'job'),
    names,
    connect('gpu-manager-claims'),
    clock,
    log,
  );
  await replica.callers.start();
  t.teardown(() => replica.callers.stop());
  t.equal(replica.target, null);
  const registered = (): string => webhooksOf(server, 'gpu-manager-claims')[0]?.clientConfig.service.path ?? '';
  const run = () =>
    registerClaimWebhooks(config('gpu-manager-claims', 'once'), log, async () =>
      connect('gpu-manager-claims-registration'),
    );
  await run();
  const first = registered();
  t.equal(replica.callers.reviewPath(first), '/parameters');
  // What a later run does at its end, once the path is a day old.
  clock.advance(DAY + MINUTE);
  const job = connect('gpu-manager-claims-registration');
  await new SecretPaths({ api: job, namespace: 'kube-system', name: names.paths, clock, log }).replaceOld();
  const [, second] = JSON.parse(
    Buffer.from(
      (server.read('secrets', 'kube-system', names.paths)?.['data'] as { readonly paths: string }).paths,
      'base64',
    ).toString(),
  ) as [{ readonly token: string }, { readonly token: string }];
  await eventually(() => {
    clock.advance(MINUTE);
    return replica.callers.reviewPath(`/${second.token}/parameters`) === '/parameters';
  }, 'the replica to know the new path');
  clock.advance(30 * DAY);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(replica.callers.reviewPath(first), '/parameters', 'the one that is registered');
  t.equal(registered(), first);
});
