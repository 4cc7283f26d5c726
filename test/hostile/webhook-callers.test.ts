/** A pod on the cluster network that reaches the service of the quota webhooks and poses as the API server. */
import { Agent, request } from 'node:https';
import { test, type Test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { systemClock } from '../../src/host/clock.js';
import { watchableApi } from '../../src/kube/watchable-api.js';
import { certifiedCallers } from '../../src/kube/admission/review-callers.js';
import { SecretPaths } from '../../src/kube/admission/secret-paths.js';
import { QuotaMetrics } from '../../src/quota-controller/quota-metrics.js';
import type { QuotaServiceOptions } from '../../src/quota-controller/service-options.js';
import { QuotaService } from '../../src/quota-controller/service.js';
import { GROUPS_PATH } from '../../src/kube/quota/names.js';
import { certificateAuthority, type Certificate } from '../harness/certificate.js';
import { eventually } from '../harness/eventually.js';
import { ManualClock } from '../manual-clock.js';
import { deployment, QuotaCluster } from '../quota-controller/cluster.js';
import { clientTo, quotaServer } from '../quota-controller/setting.js';

const ca = await certificateAuthority();
const identity = await ca.server(['127.0.0.1']);

interface Caller {
  readonly from?: string;
  readonly client?: Certificate;
}

/** Sends a request as any client that reaches the port can. Resolves to status and text. */
function ask(port: number, path: string, body: unknown, { from, client }: Caller = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: 'POST',
        ca: ca.certificate,
        agent: false,
        ...(from === undefined ? {} : { localAddress: from }),
        ...(client === undefined ? {} : { key: client.key, cert: client.certificate }),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      },
    );
    outgoing.on('error', reject).end(JSON.stringify(body));
  });
}

function reviewOf(resource: string, operation: string, object: object, oldObject: object | null = null): object {
  const group = resource === 'bizgroupresourcequotas' ? 'quota.gpu-manager.io' : 'apps';
  const { name, namespace } = (object as { metadata: { name: string; namespace?: string } }).metadata;
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'forged', operation, resource: { group, resource }, name, namespace, object, oldObject },
  };
}

const GHOST = reviewOf('deployments', 'CREATE', {
  ...deployment('ghost', 'team', 10, 1),
  apiVersion: 'apps/v1',
  kind: 'Deployment',
});

async function serving(t: Test, others: (client: ReturnType<typeof clientTo>) => Partial<QuotaServiceOptions>) {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const start = async (): Promise<QuotaService> => {
    const service = new QuotaService({
      api: watchableApi(client, systemClock, silentLog()),
      log: silentLog(),
      metrics: new QuotaMetrics(),
      address: '127.0.0.1',
      port: 0,
      certificate: { ...identity, authority: ca.certificate },
      target: (port) => ({ url: `https://127.0.0.1:${port}` }),
      webhookName: 'quota',
      unlabelled: 'Ignore',
      namespace: 'kube-system',
      identity: `${Math.random()}`,
      ...others(client),
    });
    t.teardown(() => service.stop());
    await service.start();
    await eventually(() => service.notReady === null, 'the replica to be ready');
    return service;
  };
  t.teardown(async () => {
    client.close();
    await server.stop();
  });
  /** The content of the webhook configuration, which only administrators can read. */
  const announced = (): string => {
    const hooks = server.read('validatingwebhookconfigurations', '', 'quota')?.['webhooks'] as readonly {
      readonly clientConfig: { readonly url: string };
    }[];
    return new URL(hooks.find(({ clientConfig }) => clientConfig.url.endsWith('/workloads'))?.clientConfig.url ?? '')
      .pathname;
  };
  return { server, client, start, announced };
}

test('every replica answers reviews only on the secret path of the webhook configuration', async (t) => {
  const { start, announced } = await serving(t, (api) => ({
    callers: new SecretPaths({ api, namespace: 'kube-system', name: 'paths', clock: systemClock, log: silentLog() }),
  }));
  const replicas = [await start(), await start()];
  t.match(announced(), /^\/[0-9a-f]{64}\/workloads$/);
  for (const { port } of replicas) {
    t.match(await ask(port, announced(), GHOST), /^200 .*"allowed":false.*GroupNotFound/);
    for (const path of [
      '/workloads',
      '/groups',
      `/${'0'.repeat(64)}/workloads`,
      '//workloads',
      announced().slice(0, 65),
    ])
      t.match(await ask(port, path, GHOST), /^40[04] /, path.slice(0, 20));
  }
});

test('the path rotates, and the service answers the old and the new path while API servers may use either', async (t) => {
  const time = new ManualClock(Date.now());
  const { client, start, announced } = await serving(t, (api) => ({
    callers: new SecretPaths({
      api,
      namespace: 'kube-system',
      name: 'paths',
      clock: time,
      log: silentLog(),
      rotateMs: 3_600_000,
    }),
  }));
  let [looks, running] = [0, 0];
  const send = client.request.bind(client);
  client.request = async (asked) => {
    running += 1;
    const answer = await send(asked);
    running -= 1;
    if (asked.method === 'GET' && asked.path.endsWith('/secrets/paths')) looks += 1;
    return answer;
  };
  const [one, other] = [await start(), await start()];
  const allowed = async (path: string): Promise<readonly boolean[]> =>
    Promise.all([one, other].map(async ({ port }) => (await ask(port, path, GHOST)).startsWith('200 ')));
  const first = announced();
  /** Minutes, each with the rotation step of both replicas. */
  const minutes = async (count: number): Promise<void> => {
    for (let minute = 0; minute < count; minute++) {
      const before = looks;
      time.advance(60_000);
      await eventually(() => looks >= before + 2 && running === 0, 'both to look at the Secret');
    }
  };
  await minutes(59);
  t.equal(announced(), first);
  await minutes(1);
  t.same(await allowed(first), [true, true]);
  await minutes(5);
  t.not(announced(), first, 'the configuration holds the next path');
  t.same(await allowed(announced()), [true, true]);
  t.same(await allowed(first), [true, true], 'API servers may not have read the next path yet');
  await minutes(15);
  t.same(await allowed(announced()), [true, true]);
  t.same(await allowed(first), [false, false], 'the old path is no longer valid');
});

test('with an authority of client certificates, only callers with one of the configured names may ask', async (t) => {
  const clients = await certificateAuthority();
  const strangers = await certificateAuthority();
  const { start } = await serving(t, () => ({
    certificate: { ...identity, authority: ca.certificate, clientAuthority: clients.certificate },
    callers: certifiedCallers(['kube-apiserver']),
    probePort: 0,
  }));
  const service = await start();
  const asked = async (client?: Certificate): Promise<string> =>
    ask(service.port, '/workloads', GHOST, client === undefined ? {} : { client });
  t.match(await asked(await clients.client('kube-apiserver')), /^200 .*"allowed":false/);
  t.match(await asked(await clients.client('system:node:one')), /^403 /);
  t.match(await asked(), /^403 /);
  t.match(await asked(await strangers.client('kube-apiserver')), /^403 /);
  const probe = await fetch(`http://127.0.0.1:${service.probePort}/readyz`);
  t.equal(probe.status, 200, 'the kubelet, which has no certificate, uses the port of the probes');
});

test('the server does not read bodies of unauthorised callers, and limits the bodies of each address', async (t) => {
  const { start } = await serving(t, (api) => ({
    callers: new SecretPaths({ api, namespace: 'kube-system', name: 'paths', clock: systemClock, log: silentLog() }),
  }));
  const { port } = await start();
  const agent = new Agent({ ca: ca.certificate, maxSockets: 200 });
  t.teardown(async () => agent.destroy());
  const before = process.memoryUsage().rss;
  const statuses = await Promise.all(
    Array.from(
      { length: 121 },
      () =>
        new Promise<number>((resolve) => {
          const outgoing = request(
            {
              host: '127.0.0.1',
              port,
              path: '/workloads',
              method: 'POST',
              agent,
              headers: { 'content-length': 7.9e6 },
            },
            (response) => {
              response.resume();
              resolve(response.statusCode ?? 0);
            },
          );
          outgoing.on('error', () => resolve(0));
          outgoing.write(Buffer.alloc(65_536, 32));
        }),
    ),
  );
  t.ok(
    statuses.every((status) => status === 404 || status === 0),
    statuses.join(),
  );
  t.ok(statuses.includes(404));
  t.ok(process.memoryUsage().rss - before < 300 << 20, 'the server holds nothing of 950 MB');
});

test('an update whose old object differs from the live one changes nothing', async (t) => {
  const on = await QuotaCluster.start();
  t.teardown(() => on.stop());
  await on.createGroup('root', { 'limits.cpu': 100 });
  await on.createGroup('victim', { 'limits.cpu': 40 }, 'root');
  const live = on.server.read('bizgroupresourcequotas', '', 'victim') ?? {};
  const { metadata, spec } = live as { metadata: object; spec: object };
  const limited = (cores: number, generation: number): object => ({
    ...live,
    metadata: { ...metadata, generation },
    spec: { ...spec, hard: { 'limits.cpu': cores } },
  });
  for (const [from, to] of [
    [limited(100, 1), limited(1, 2)],
    [limited(10, 1), limited(60, 2)],
    [limited(40, 7), limited(60, 8)],
  ]) {
    const { response } = await on.ask('/groups', reviewOf('bizgroupresourcequotas', 'UPDATE', to ?? {}, from));
    t.match(response, { allowed: false, status: { code: 409 } });
  }
  t.match(await on.createGroup('other', { 'limits.cpu': 60 }, 'root'), { ok: true }, 'no capacity was taken');
  await on.deploy('web', 'victim', 2, 1);
  const web = on.server.read('deployments', 'default', 'web') as { metadata: object } & Record<string, unknown>;
  const forged = (replicas: number, changes: object): object => ({
    ...web,
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...web.metadata, ...changes },
    spec: { ...(web['spec'] as object), replicas },
  });
  for (const changes of [{ uid: 'another' }, { generation: 99, resourceVersion: '999999' }]) {
    const { response } = await on.ask(
      '/workloads',
      reviewOf('deployments', 'UPDATE', forged(30, changes), forged(2, changes)),
    );
    t.match(response, { allowed: false, status: { code: 409 } });
  }
  t.match(await on.deploy('fits', 'victim', 38, 1), { ok: true }, 'no capacity is reserved for the forged objects');
});

test('an increase that is admitted and never written is reverted', async (t) => {
  const on = await QuotaCluster.start(0);
  t.teardown(() => on.stop());
  await on.join({ reservationMs: 200, refreshMs: 3_600_000 });
  await on.createGroup('root', { 'limits.cpu': 100 });
  await on.createGroup('victim', { 'limits.cpu': 10 }, 'root');
  const live = on.server.read('bizgroupresourcequotas', '', 'victim') ?? {};
  const { metadata, spec } = live as { metadata: { generation: number }; spec: object };
  const raised = {
    ...live,
    metadata: { ...metadata, generation: metadata.generation + 1 },
    spec: { ...spec, hard: { 'limits.cpu': 90 } },
  };
  const { response } = await on.ask('/groups', reviewOf('bizgroupresourcequotas', 'UPDATE', raised, live));
  t.match(response, { allowed: true });
  const another = (name: string) =>
    on.client.request({
      method: 'POST',
      path: GROUPS_PATH,
      body: { metadata: { name }, spec: { parentBizGroup: 'root', hard: { 'limits.cpu': 90 } } },
    });
  let attempt = 0;
  await eventually(async () => (await another(`other-${attempt++}`)).ok, 'the difference to be free again');
});
