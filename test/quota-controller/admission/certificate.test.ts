import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import { test } from 'tap';
import { systemClock, type Clock } from '../../../src/host/clock.js';
import { silentLog } from '../../../src/host/log.js';
import { watchableApi } from '../../../src/kube/watchable-api.js';
import { issue, readCertificate } from '../../../src/kube/admission/webhook-identity.js';
import type { KubeClient } from '../../../src/kube/client.js';
import { sharedCertificate, type IssuedCertificate } from '../../../src/kube/admission/certificate-secret.js';
import { QuotaMetrics } from '../../../src/quota-controller/quota-metrics.js';
import { QuotaService } from '../../../src/quota-controller/service.js';
import type { ApiServer } from '../../harness/api-server/api-server.js';
import { eventually } from '../../harness/eventually.js';
import { ManualClock } from '../../manual-clock.js';
import { scratchDirectory } from '../../scratch.js';
import { clientTo, quotaServer } from '../setting.js';

const DAY = 86_400_000;

/** The authority in the webhook configuration. */
function trusted(server: ApiServer): string {
  const [first] = server.read('validatingwebhookconfigurations', '', 'quota')?.['webhooks'] as readonly {
    readonly clientConfig: { readonly caBundle: string };
  }[];
  return Buffer.from(first?.clientConfig.caBundle ?? '', 'base64').toString('utf8');
}

/** The certificate that a new connection gets; the client verifies it. */
function shown(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', ca, servername: '' }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

const fingerprint = ({ certificate }: IssuedCertificate): string => new X509Certificate(certificate).fingerprint256;

/**
 * Months pass on the manual clock. Timers of a few seconds use the machine's clock, because they would fire millions of
 * times.
 */
function patient(clock: ManualClock): Clock {
  return {
    now: () => clock.now(),
    after: (delayMs, action) => (delayMs < 20_000 ? systemClock : clock).after(delayMs, action),
    every: (periodMs, action) => (periodMs < 20_000 ? systemClock : clock).every(periodMs, action),
  };
}

async function replica(
  server: ApiServer,
  clock: ManualClock,
  look: () => Promise<IssuedCertificate>,
  others: object = {},
): Promise<{ readonly service: QuotaService; readonly stop: () => Promise<void> }> {
  const client = clientTo(server.url);
  const service = new QuotaService({
    api: watchableApi(client, systemClock, silentLog()),
    log: silentLog(),
    metrics: new QuotaMetrics(),
    address: '127.0.0.1',
    port: 0,
    certificate: await look(),
    currentCertificate: look,
    clock: patient(clock),
    target: (port) => ({ url: `https://127.0.0.1:${port}` }),
    webhookName: 'quota',
    unlabelled: 'Ignore',
    namespace: 'kube-system',
    identity: `${Math.random()}`,
    ...others,
  });
  await service.start();
  return {
    service,
    stop: async () => {
      await service.stop();
      client.close();
    },
  };
}

/**
 * Issues a certificate in a Secret, first for one year and then for longer. Replicas that renew at the same time issue
 * one each.
 */
function renewing(client: KubeClient, clock: ManualClock): () => Promise<IssuedCertificate> {
  const days = [365];
  return () =>
    sharedCertificate({
      api: client,
      namespace: 'kube-system',
      name: 'tls',
      hosts: ['127.0.0.1'],
      issue: (hosts) => issue(hosts, days.shift() ?? 1000),
      now: () => clock.now(),
    });
}

test('a certificate is renewed while replicas run: clients trust every replica at any time, and connections stay open', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const clock = new ManualClock(Date.now());
  const look = renewing(client, clock);
  const replicas = [await replica(server, clock, look), await replica(server, clock, look)];
  const ports = replicas.map(({ service }) => service.port);
  const agent = new Agent({ ca: trusted(server), keepAlive: true, maxSockets: 1 });
  t.teardown(async () => {
    agent.destroy();
    for (const { stop } of replicas) await stop();
    client.close();
    await server.stop();
  });
  const old = fingerprint(await look());
  const kept = (): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: ports[0], path: '/metrics', agent }, (response) =>
        response.resume().on('end', () => resolve(asked.reusedSocket)),
      );
      asked.on('error', reject).end();
    });
  await kept();
  const seen = new Set<string>();
  /** Every client that reads the authority trusts every replica. */
  const everywhere = async (): Promise<readonly string[]> => {
    const prints = await Promise.all(ports.map((port) => shown(port, trusted(server))));
    for (const print of prints) seen.add(print);
    return prints;
  };
  clock.advance(300 * DAY);
  await eventually(() => server.requests.filter(({ resource }) => resource === 'secrets').length > 4, 'both to look');
  t.same(await everywhere(), [old, old]);
  clock.advance(36 * DAY);
  // The Secret has the new certificate before any replica serves it.
  await eventually(() => trusted(server).split('BEGIN').length === 3, 'both authorities to be announced');
  t.same(await everywhere(), [old, old]);
  for (let round = 0; round < 200 && !(await everywhere()).every((print) => print !== old); round++)
    clock.advance(10_000);
  const next = fingerprint(await look());
  t.same(await everywhere(), [next, next]);
  t.same([...seen].sort(), [old, next].sort());
  t.equal(await kept(), true, 'who is connected stays so');
});

test('certificate files are reloaded when they change, after all of them have changed', async (t) => {
  const server = await quotaServer();
  const clock = new ManualClock(Date.now());
  const directory = await scratchDirectory(t);
  const files = {
    certFile: join(directory, 'tls.crt'),
    keyFile: join(directory, 'tls.key'),
    authorityFile: join(directory, 'ca.crt'),
  };
  const [old, next] = [await issue(['127.0.0.1']), await issue(['127.0.0.1'])];
  const write = (file: string, text: string): void => writeFileSync(file, text);
  write(files.certFile, old.certificate);
  write(files.keyFile, old.key);
  write(files.authorityFile, old.authority);
  const { service, stop } = await replica(server, clock, () => readCertificate(files));
  t.teardown(async () => {
    await stop();
    await server.stop();
  });
  const both = old.authority + next.authority;
  t.equal(await shown(service.port, both), fingerprint(old));
  write(files.certFile, next.certificate);
  write(files.authorityFile, both);
  for (let round = 0; round < 5; round++) {
    clock.advance(60_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  t.equal(await shown(service.port, both), fingerprint(old), 'the key is not there yet');
  t.equal(trusted(server), old.authority);
  write(files.keyFile, next.key);
  await eventually(async () => {
    clock.advance(60_000);
    return (await shown(service.port, trusted(server))) === fingerprint(next);
  }, 'the new one');
  t.equal(trusted(server), both);
});

test('while the API server fails, nothing is renewed and the served certificate stays', async (t) => {
  const server = await quotaServer();
  const client = clientTo(server.url);
  const clock = new ManualClock(Date.now());
  const look = renewing(client, clock);
  const { service, stop } = await replica(server, clock, look);
  t.teardown(async () => {
    await stop();
    client.close();
    await server.stop();
  });
  const old = await shown(service.port, trusted(server));
  const fault = server.inject({ resource: 'validatingwebhookconfigurations' }, { do: 'answer', code: 500 });
  clock.advance(340 * DAY);
  await eventually(() => {
    clock.advance(60_000);
    return fault.hits > 2;
  }, 'it to try');
  t.equal(await shown(service.port, trusted(server)), old);
  fault.remove();
  await eventually(async () => {
    clock.advance(60_000);
    return (await shown(service.port, trusted(server))) !== old;
  }, 'the renewal');
});
