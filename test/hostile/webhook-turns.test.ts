/**
 * Reviews of the largest objects that an API server sends: 3 MiB each, and an update has two. No turn of the webhooks'
 * event loops may take long, for the reviews of others wait for it.
 */
import { Agent, request } from 'node:https';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { API_VERSION, GROUP_KIND } from '../../src/kube/quota/names.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MeteredProgram } from '../harness/metered-program.js';
import { holdsTurns } from '../harness/turn-limit.js';
import { quotaServer } from '../quota-controller/setting.js';

/** The largest request that an API server takes. */
const OBJECT_BYTES = 3 << 20;

interface Webhook {
  readonly program: MeteredProgram;
  readonly review: (path: string, body: string) => Promise<string>;
}

async function start(t: Test, server: ApiServer, command: readonly string[]): Promise<Webhook> {
  const directory = mkdtempSync(join(tmpdir(), 'gm-'));
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, kubeconfig(server, { token: 'webhook' }));
  const port = await freePort();
  const flags = ['--kubeconfig', file, '--address', '127.0.0.1', '--port', `${port}`, '--no-register'];
  const program = new MeteredProgram([...command, ...flags, '--namespace', 'default', '--log-level', 'warn']);
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  t.teardown(async () => {
    agent.destroy();
    await program.stop();
    rmSync(directory, { recursive: true });
  });
  const call = (path: string, body: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        { host: '127.0.0.1', port, path, method: body === '' ? 'GET' : 'POST', agent },
        (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          answer.on('end', () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(`${answer.statusCode}: ${text}`)))); // prettier-ignore
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  await until('the webhook to be ready', async () => call('/readyz', '').then(() => true, () => false), 60_000); // prettier-ignore
  return { program, review: call };
}

function reviewOf(
  resource: { group: string; resource: string },
  object: object,
  oldObject: object | null = null,
): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      operation: oldObject === null ? 'CREATE' : 'UPDATE',
      resource: { version: 'v1', ...resource },
      namespace: 'default',
      name: 'hostile',
      // Nothing is written: only the decision is measured.
      dryRun: true,
      userInfo: { username: 'tenant' },
      object,
      oldObject,
    },
  });
}

/** As many of these as an object may have. */
function filled<T>(item: (at: number) => T): T[] {
  const items: T[] = [];
  for (let bytes = 0; ;) {
    const next = item(items.length);
    bytes += JSON.stringify(next).length + 1;
    if (bytes > OBJECT_BYTES - 2_000) return items;
    items.push(next);
  }
}

const metadata = { name: 'hostile', namespace: 'default', uid: 'hostile' };
const gpu = (cores: number, blocks: number) => ({
  limits: { 'tencent.com/vcuda-core': `${cores}`, 'tencent.com/vcuda-memory': `${blocks}` },
});

async function holds(
  t: Test,
  webhook: Webhook,
  path: string,
  cases: readonly (readonly [string, string])[],
): Promise<void> {
  for (const [what, body] of cases) {
    let answer = '';
    const measure = () => webhook.program.longestTurn(async () => void (answer = await webhook.review(path, body)));
    await holdsTurns(t, what, measure, { details: () => `for ${body.length >> 10} KiB: ${answer.slice(0, 200)}` });
  }
}

test('no turn of the claim webhook takes long', async (t) => {
  const server = await quotaServer();
  t.teardown(() => server.stop());
  const webhook = await start(t, server, ['claim-webhook']);
  const pods = { group: '', resource: 'pods' };
  const pod = (spec: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  await holds(t, webhook, '/pods', [
    ['a small pod', reviewOf(pods, pod({ containers: [{ name: 'a', resources: gpu(10, 1) }] }))],
    ['containers that ask for the same', reviewOf(pods, pod({ containers: filled(() => ({ resources: gpu(1, 1) })) }))],
    ['containers that ask for different amounts', reviewOf(pods, pod({ containers: filled((at) => ({ resources: gpu(1 + (at % 99), 1 + Math.floor(at / 99)) })) }))], // prettier-ignore
    ['init containers', reviewOf(pods, pod({ initContainers: filled((at) => ({ resources: gpu(1, 1 + (at % 9)) })), containers: [{ resources: gpu(1, 1) }] }))], // prettier-ignore
    ['claims', reviewOf(pods, pod({ containers: [{ resources: gpu(1, 1) }], resourceClaims: filled((at) => ({ name: `vcuda-${at}` })) }))], // prettier-ignore
    ['annotations', reviewOf(pods, { ...pod({ containers: [] }), metadata: { ...metadata, annotations: Object.fromEntries(filled((at) => [`k${at}`, ''])) } })], // prettier-ignore
  ]);
  const claims = { group: 'resource.k8s.io', resource: 'resourceclaims' };
  const config = (parameters: object) => ({ opaque: { driver: 'gpu.tencent.com', parameters } });
  const claim = (entries: object[]) => ({ kind: 'ResourceClaim', metadata, spec: { devices: { config: entries } } });
  const wrong = filled((at) => config({ apiVersion: 'x', kind: 'Y', at }));
  await holds(t, webhook, '/parameters', [
    ['parameters', reviewOf(claims, claim(wrong))],
    ['changed parameters', reviewOf(claims, claim(wrong), claim([...wrong].reverse()))],
  ]);
});

test('no turn of the quota service takes long', async (t) => {
  const server = await quotaServer();
  t.teardown(() => server.stop());
  server.seed('bizgroupresourcequotas', {
    apiVersion: API_VERSION,
    kind: GROUP_KIND,
    metadata: { name: 'g' },
    spec: { hard: { 'limits.cpu': 1_000_000 } },
  });
  const webhook = await start(t, server, ['quota', 'serve']);
  const deployments = { group: 'apps', resource: 'deployments' };
  const labels = { 'biz.group.resource.quota': 'g' };
  const deployment = (spec: object, replicas = 1) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadata, labels },
    spec: { replicas, template: { metadata: { labels }, spec } },
  });
  const cpu = (of: string) => ({ requests: { cpu: of }, limits: { cpu: of } });
  const many = deployment({ containers: filled(() => ({ resources: cpu('1m') })) });
  await holds(t, webhook, '/workloads', [
    ['a small deployment', reviewOf(deployments, deployment({ containers: [{ resources: cpu('1') }] }))],
    ['containers', reviewOf(deployments, many)],
    ['a change of containers', reviewOf(deployments, { ...many, spec: { ...many.spec, replicas: 2 } }, many)],
    ['resources', reviewOf(deployments, deployment({ containers: [{ resources: { limits: Object.fromEntries(filled((at) => [`e.com/r${at}`, '1'])) } }] }))], // prettier-ignore
    ['claims', reviewOf(deployments, deployment({ containers: [], resourceClaims: filled((at) => ({ name: `c${at}`, resourceClaimTemplateName: `t${at}` })) }))], // prettier-ignore
    ['tolerations', reviewOf(deployments, deployment({ containers: [], tolerations: filled((at) => ({ key: `k${at}` })) }))], // prettier-ignore
    ['as many fields as are read', reviewOf(deployments, deployment({ containers: [], tolerations: Array.from({ length: 33_000 }, (_, at) => ({ key: `k${at}`, operator: 'Exists' })) }))], // prettier-ignore
    ['long quantities', reviewOf(deployments, deployment({ containers: [{ resources: cpu('9'.repeat(2_000_000)) }] }))],
  ]);
});
