import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { KubeClient } from '../../src/kube/client.js';
import { inClusterCredentials, kubeconfigCredentials, type Credentials } from '../../src/kube/credentials.js';
import { certificateAuthority } from '../harness/certificate.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { ManualClock } from '../manual-clock.js';
import { systemClock } from '../../src/host/clock.js';
import { scratchDirectory } from '../scratch.js';
import { apiServer } from './setting.js';

const ca = await certificateAuthority();
const serverTls = async (authority = ca) => {
  const { key, certificate } = await authority.server(['127.0.0.1']);
  return { key, certificate };
};

async function whoAmI(t: Test, credentials: Credentials): Promise<string> {
  const client = new KubeClient({ credentials, clock: systemClock, userAgent: 'test' });
  t.teardown(() => client.close());
  const answer = await client.request({ method: 'GET', path: '/api/v1/pods' });
  return answer.ok ? 'let in' : answer.code;
}

async function serviceAccount(t: Test, token: string, authority = ca): Promise<string> {
  const directory = join(await scratchDirectory(t), 'serviceaccount');
  await mkdir(directory);
  await writeFile(join(directory, 'token'), `${token}\n`);
  await writeFile(join(directory, 'ca.crt'), authority.certificate);
  return directory;
}

test("the client finds the pod's service account where the kubelet puts it", async (t) => {
  const server = await apiServer(t, {
    tls: await serverTls(),
    tokens: new Map([['secret', 'system:serviceaccount:kube-system:gpu-manager']]),
  });
  const directory = await serviceAccount(t, 'secret');
  const credentials = await inClusterCredentials({
    clock: systemClock,
    directory,
    environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(server.port) },
  });
  t.equal(await whoAmI(t, credentials), 'let in');
  t.match(server.requests, [{ user: 'system:serviceaccount:kube-system:gpu-manager' }]);
});

test('the client refuses a server with a certificate of another authority', async (t) => {
  const server = await apiServer(t, { tls: await serverTls(await certificateAuthority('other')) });
  const directory = await serviceAccount(t, 'secret');
  const credentials = await inClusterCredentials({
    clock: systemClock,
    directory,
    environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(server.port) },
  });
  t.equal(await whoAmI(t, credentials), 'unreachable');
  t.equal(server.requests.length, 0);
});

test('the client uses a renewed token within a minute, and at once when the server refuses the old one', async (t) => {
  const clock = new ManualClock();
  const directory = await serviceAccount(t, 'first');
  const credentials = await inClusterCredentials({
    clock,
    directory,
    environment: { KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '443' },
  });
  t.teardown(() => credentials.close());
  t.equal(credentials.server.href, 'https://[::1]/');
  const token = async (): Promise<string | undefined> => (await credentials.access()).headers.authorization;
  await writeFile(join(directory, 'token'), 'second');
  t.equal(await token(), 'Bearer first');
  clock.advance(60_000);
  t.equal(await token(), 'Bearer second');
  const { agent } = await credentials.access();
  await writeFile(join(directory, 'token'), 'third');
  credentials.distrust();
  t.equal(await token(), 'Bearer third');
  t.equal((await credentials.access()).agent, agent, 'open connections stay while the authority is the same');
  await writeFile(join(directory, 'ca.crt'), (await certificateAuthority('new')).certificate);
  credentials.distrust();
  t.not((await credentials.access()).agent, agent);
});

test('the error outside a cluster names the remedy', async (t) => {
  await t.rejects(inClusterCredentials({ clock: systemClock, environment: {} }), /--kubeconfig or --standalone/);
  const directory = await scratchDirectory(t);
  await t.rejects(
    inClusterCredentials({
      clock: systemClock,
      directory,
      environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
    }),
    { code: 'ENOENT' },
  );
});

test("a user's token is sent without the certificate or the token of the kubeconfig", async (t) => {
  const server = await apiServer(t, {
    tls: { ...(await serverTls()), clientCa: ca.certificate },
    tokens: new Map([
      ['own', 'console'],
      ['janes', 'jane'],
    ]),
  });
  const path = join(await scratchDirectory(t), 'kubeconfig');
  for (const user of [{ certificate: await ca.client('console') }, { token: 'own' }]) {
    await writeFile(path, kubeconfig({ url: server.url, ca: ca.certificate }, user));
    const credentials = await kubeconfigCredentials(path, systemClock);
    const client = new KubeClient({ credentials, clock: systemClock, userAgent: 'test' });
    t.teardown(() => client.close());
    const get = { method: 'GET', path: '/api/v1/nodes' } as const;
    // A server looks at the certificate of a connection before it looks at a token.
    for (const api of [client, client.withToken('janes'), client]) t.match(await api.request(get), { ok: true });
    t.match(await client.withToken('wrong').request(get), { ok: false, code: 'unauthorized' });
    t.same(
      server.requests.slice(-3).map((request) => request.user),
      ['console', 'jane', 'console'],
    );
  }
});

test('a kubeconfig authenticates by token and by client certificate', async (t) => {
  const server = await apiServer(t, {
    tls: { ...(await serverTls()), clientCa: ca.certificate },
    tokens: new Map([['secret', 'ada']]),
  });
  const path = join(await scratchDirectory(t), 'config');
  await writeFile(path, kubeconfig({ url: server.url, ca: ca.certificate }, { token: 'secret' }));
  t.equal(await whoAmI(t, await kubeconfigCredentials(path, systemClock)), 'let in');
  await writeFile(path, kubeconfig({ url: server.url, ca: ca.certificate }, { certificate: await ca.client('grace') }));
  t.equal(await whoAmI(t, await kubeconfigCredentials(path, systemClock)), 'let in');
  await writeFile(path, kubeconfig({ url: server.url, ca: ca.certificate }, { token: 'wrong' }));
  t.equal(await whoAmI(t, await kubeconfigCredentials(path, systemClock)), 'unauthorized');
  t.match(server.requests, [{ user: 'ada' }, { user: 'grace' }]);
});

test('a kubeconfig without TLS works for a server on this machine', async (t) => {
  const server = await apiServer(t);
  const path = join(await scratchDirectory(t), 'config');
  await writeFile(path, kubeconfig({ url: server.url }, {}));
  t.equal(await whoAmI(t, await kubeconfigCredentials(path, systemClock)), 'let in');
});

test('a kubeconfig that is missing or has no context is refused at once', async (t) => {
  const directory = await scratchDirectory(t);
  await t.rejects(kubeconfigCredentials(join(directory, 'none'), systemClock), { code: 'ENOENT' });
  await writeFile(
    join(directory, 'empty'),
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [], users: [], contexts: [] }),
  );
  await t.rejects(kubeconfigCredentials(join(directory, 'empty'), systemClock), /no current context/);
});
