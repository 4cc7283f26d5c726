import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import tap, { test } from 'tap';
import { systemClock } from '../../src/host/clock.js';
import type { KubeClient } from '../../src/kube/client.js';
import { openKubeClient } from '../../src/kube/open-client.js';
import { clusterObjects, nodeObject, podObject } from '../console/cluster-objects.js';
import { ConsoleProcess } from '../console/console-process.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { until } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { DESKTOP, noBrowser, openBrowser } from '../page/browser.js';
import { AgentProcess } from './agent-process.js';
import { BUSYBOX_IMAGE, NODE, TestCluster } from './cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const GPUS = '\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\tX\n';
/** Nodes of 8 GPUs with 8 pods each; 1000 of them take minutes to create. */
const NODES = Number(process.env.GPU_MANAGER_E2E_NODES ?? 20);
const CONSOLE_PORT = 15_680;
const AGENT_PORT = 15_679;
const AGENT_FLAGS = ['--query-addr=::', '--token-review=true', '--tls-self-signed=true', `--query-port=${AGENT_PORT}`];
const PROXIED = '/api/v1/namespaces/kube-system/services/https:gpu-console:443/proxy';

const cluster = new TestCluster();
const agent = new AgentProcess(cluster, GPUS, [...AGENT_FLAGS, '--probe-port=15678']);
let admin: KubeClient;
let console: ConsoleProcess;
/** Base URL of the console behind `kubectl proxy`, and of the API server there. */
let base = '';
let proxied = '';
const tokens: Record<string, string> = {};

tap.setTimeout(timeLimit(1_500_000));

/** A token of a service account, as `kubectl create token` makes it from 1.24 on. */
async function tokenOf(namespace: string, account: string, audiences: readonly string[] = []): Promise<string> {
  const answer = await admin.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3_600, audiences },
    },
  });
  if (!answer.ok) throw new Error(answer.message);
  return (answer.body as { readonly status: { readonly token: string } }).status.token;
}

/** A kubeconfig with the rights of a service account alone. */
function kubeconfigOf(account: string): string {
  const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')) as { users: object[] };
  config.users = [{ name: 'admin', user: { token: tokens[account] } }];
  const file = join(cluster.directory, `kubeconfig-${account}`);
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** `kubectl proxy` with a kubeconfig; returns its URL. */
async function kubectlProxy(kubeconfig: string): Promise<string> {
  const child = spawn('kubectl', ['proxy', '--port=0', `--kubeconfig=${kubeconfig}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  tap.teardown(() => void child.kill());
  for await (const line of createInterface({ input: child.stdout })) {
    const address = /serve on (127\.0\.0\.1:\d+)/u.exec(line)?.[1];
    if (address === undefined) continue;
    child.stdout.resume();
    return `http://${address}`;
  }
  throw new Error('kubectl proxy ended');
}

/** A pod of the node's network that does nothing: a process on the node serves at its address. */
function standIn(container: object): object {
  return {
    hostNetwork: true,
    terminationGracePeriodSeconds: 0,
    containers: [
      { image: BUSYBOX_IMAGE, imagePullPolicy: 'Never', command: ['sh', '-c', 'sleep 100000'], ...container },
    ],
  };
}

async function create(path: string, object: KubeObject): Promise<KubeObject> {
  const answer = await admin.request({ method: 'POST', path, body: object });
  if (!answer.ok) throw new Error(`${path}: ${answer.message}`);
  return answer.body as KubeObject;
}

/** Creates nodes, and pods that run on them. */
async function createAll(objects: Iterable<{ readonly resource: 'nodes' | 'pods'; readonly object: KubeObject }>) {
  const left = [...objects].reverse();
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { resource, object } = next;
      if (resource === 'nodes') await create('/api/v1/nodes', object);
      else await createPod(object);
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

async function createPod(object: KubeObject): Promise<void> {
  const { name, namespace = 'default', labels, annotations } = object.metadata;
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const spec = { ...(object.spec as object), automountServiceAccountToken: false };
  const metadata = { name, namespace, labels, annotations } as KubeObject['metadata'];
  const created = await create(path, { metadata, spec });
  const answer = await admin.request({
    method: 'PUT',
    path: `${path}/${name}/status`,
    body: { ...created, status: object.status },
  });
  if (!answer.ok) throw new Error(`${path}/${name}: ${answer.message}`);
}

function get(path: string, user: string): Promise<Response> {
  return fetch(`${base}${path}`, { headers: { 'x-gpu-manager-token': tokens[user] ?? user } });
}

interface Rows {
  readonly tables: readonly string[];
  readonly rows: {
    readonly nodes: readonly { readonly name: string }[];
    readonly pods: readonly { readonly name: string; readonly namespace: string; readonly state: string }[];
  };
}

const rowsOf = async (user: string): Promise<Rows> => (await (await get('/api/cluster', user)).json()) as Rows;

/** Name of the pod that the DaemonSet of the agents made. */
async function agentPodName(): Promise<string> {
  const path = '/api/v1/namespaces/kube-system/pods';
  return until('the pod of the agent', async () => {
    const answer = await admin.request({
      method: 'GET',
      path,
      query: { labelSelector: 'app.kubernetes.io/name=gpu-manager' },
    });
    const items = answer.ok ? (answer.body as { readonly items: readonly KubeObject[] }).items : [];
    // Before it has an address, the API server's proxy refuses it.
    return items.find(({ status }) => 'podIP' in (status as object))?.metadata.name ?? false;
  });
}

async function opened(browser: Browser | BrowserContext, url: string, user: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(url);
  await page.locator('#token-text').fill(tokens[user] ?? '');
  await page.locator('#token-text').press('Enter');
  return page;
}

tap.before(async () => {
  admin = await openKubeClient(cluster.kubeconfig, systemClock);
  // The roles, services and accounts only: what would run in pods runs on the node.
  for (const file of ['daemonset.yaml', 'etc/console/deployment.yaml'])
    await cluster.kubectl('apply', '-f', join(ROOT, file));
  if (cluster.version.atLeast(30)) await cluster.kubectl('apply', '-f', join(ROOT, 'etc/admission/console-proxy.yaml'));
  await cluster.kubectl('-n', 'kube-system', 'delete', 'daemonset/gpu-manager', 'deployment/gpu-console');
  tokens.console = await tokenOf('kube-system', 'gpu-console');
  console = await ConsoleProcess.start(`--kubeconfig=${kubeconfigOf('console')}`, `--address=:${CONSOLE_PORT}`);
  tap.teardown(() => console.stop());
  await agent.start();
  tap.teardown(() => agent.stop());
  const labels = { 'app.kubernetes.io/name': 'gpu-manager' };
  const agentSpec = { serviceAccountName: 'gpu-manager', ...standIn({ name: 'gpu-manager', args: AGENT_FLAGS }) };
  await cluster.apply(
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'gpu-manager', namespace: 'kube-system' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: agentSpec } },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'console', namespace: 'kube-system', labels: { app: 'gpu-console' } },
      spec: standIn({ name: 'console', ports: [{ name: 'https', containerPort: CONSOLE_PORT }] }),
    },
  );

  for (const namespace of ['research', 'search', 'ads', 'vision', 'speech', 'platform'])
    await cluster.kubectl('create', 'namespace', namespace);
  // The operator lists nodes and pods everywhere, the researcher pods of one namespace; jane may open pages of nodes.
  for (const account of ['operator', 'researcher', 'stranger', 'jane'])
    await cluster.kubectl('create', 'serviceaccount', account);
  const everywhere = ['clusterrole', 'lists', '--verb=list', '--resource=nodes,pods'];
  await cluster.kubectl('create', ...everywhere);
  const binding = ['clusterrolebinding', 'operator', '--clusterrole=lists', '--serviceaccount=default:operator'];
  await cluster.kubectl('create', ...binding);
  await cluster.kubectl('-n', 'research', 'create', 'role', 'lists', '--verb=list', '--resource=pods');
  const inResearch = ['rolebinding', 'researcher', '--role=lists', '--serviceaccount=default:researcher'];
  await cluster.kubectl('-n', 'research', 'create', ...inResearch);
  for (const role of ['gpu-manager-viewer', 'gpu-console-viewer'])
    await cluster.kubectl(
      ...['-n', 'kube-system', 'create', 'rolebinding', `jane-${role}`, `--role=${role}`],
      '--serviceaccount=default:jane',
    );
  for (const account of ['operator', 'researcher', 'stranger', 'jane'])
    tokens[account] = await tokenOf('default', account);
  tokens.reader = await tokenOf('kube-system', 'gpu-manager-reader', ['gpu-manager']);

  proxied = await kubectlProxy(kubeconfigOf('jane'));
  base = `${proxied}${PROXIED}`;
  await until('the console behind its service', async () => (await fetch(`${base}/readyz`)).ok, 60_000);
});

test('each user sees what the API server lets the user list', async (t) => {
  await createAll([
    { resource: 'nodes', object: nodeObject('small-node', { gpus: 2 }) },
    ...['research', 'ads'].map((namespace) => ({
      resource: 'pods' as const,
      object: podObject(`first-of-${namespace}`, { namespace, node: 'small-node', gpus: [0] }),
    })),
  ]);
  const seen = await until('the rows', async () => {
    const found = await rowsOf('operator');
    return found.rows.pods.length >= 2 && found;
  });
  t.ok(seen.rows.nodes.some(({ name }) => name === 'small-node'));
  t.match(seen.rows.pods.map(({ namespace, name, state }) => `${namespace}/${name} ${state}`).sort(), [
    'ads/first-of-ads running',
    'research/first-of-research running',
  ]);
  const of = await rowsOf('researcher');
  t.same(of.tables, ['pods'], 'the view of pods, with those of one namespace');
  t.same(of.rows.nodes, []);
  t.same(
    of.rows.pods.map(({ name }) => name),
    ['first-of-research'],
  );
  t.equal((await get('/api/node?name=small-node', 'researcher')).status, 403);
  const refused = await get('/api/cluster', 'stranger');
  t.equal(refused.status, 403);
  t.match(await refused.text(), /system:serviceaccount:default:stranger may list neither nodes/);
  t.equal((await get('/api/cluster', 'no-such-token')).status, 401);
  t.equal((await fetch(`${base}/api/cluster`)).status, 401, 'the rights of kubectl proxy are not those of the caller');
});

test('a user stops and resumes a workload with the rights of the user', async (t) => {
  const workload = { kind: 'Deployment.apps', namespace: 'research', name: 'serve' };
  const labels = { app: 'serve' };
  await cluster.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'serve', namespace: 'research' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      // Its pods wait: only the object matters.
      template: { metadata: { labels }, spec: { ...standIn({ name: 'main' }), nodeSelector: { no: 'node' } } },
    },
  });
  const change = async (user: string, isStopped: boolean): Promise<unknown> => {
    const answer = await fetch(`${base}/api/workload/switch`, {
      method: 'POST',
      headers: { 'x-gpu-manager-token': tokens[user] ?? '', 'content-type': 'application/json' },
      body: JSON.stringify({ ...workload, isStopped }),
    });
    return answer.status === 200 ? answer.json() : answer.status;
  };
  const replicas = (): Promise<string> =>
    cluster.kubectl('-n', 'research', 'get', 'deployment', 'serve', '-o', 'jsonpath={.spec.replicas}');
  t.match(await change('researcher', true), { ok: false, reason: /cannot get resource "deployments"/ });
  await cluster.kubectl(
    ...['-n', 'research', 'create', 'role', 'stops', '--verb=get,patch', '--resource=deployments.apps'],
  );
  const binding = ['rolebinding', 'stops', '--role=stops', '--serviceaccount=default:researcher'];
  await cluster.kubectl('-n', 'research', 'create', ...binding);
  await until('the workload to stop', async () => {
    await change('researcher', true);
    return (await replicas()) === '0';
  });
  const query = new URLSearchParams(workload).toString();
  const state = await (await get(`/api/workload?${query}`, 'researcher')).json();
  t.match(state, { ok: true, way: 'scale', isStopped: true, replicas: 2, refusal: undefined });
  t.same(await change('researcher', false), { ok: true });
  t.equal(await replicas(), '2');
  t.match(await change('operator', true), { ok: false, reason: /cannot get resource "deployments"/ });
  t.equal(await replicas(), '2');
});

test('the account of the manifests may do what the console needs, and no more', async (t) => {
  const may = (...question: string[]) =>
    cluster
      .kubectl('auth', 'can-i', ...question, '--as=system:serviceaccount:kube-system:gpu-console')
      .then((answer) => answer.includes('yes'))
      .catch(() => false);
  t.ok(await may('list', 'pods', '-A'));
  t.ok(await may('get', 'pods', '--subresource=proxy', '-n', 'kube-system'));
  t.notOk(await may('get', 'pods', '--subresource=proxy', '-n', 'default'));
  t.notOk(await may('create', 'pods', '--subresource=proxy', '-n', 'kube-system'));
  t.notOk(await may('get', 'secrets', '-n', 'kube-system'));
  t.notOk(await may('create', 'serviceaccounts', '--subresource=token', '-n', 'kube-system'));
  t.notOk(await may('delete', 'pods', '-A'));
});

test(
  'a policy keeps the account of the console to two paths of agents',
  { skip: cluster.version.atLeast(30) ? false : 'needs Kubernetes 1.30' },
  async (t) => {
    const proxy = await kubectlProxy(kubeconfigOf('console'));
    const read = async (pod: string, path: string) => {
      const answer = await fetch(`${proxy}/api/v1/namespaces/kube-system/pods/https:${pod}/proxy${path}`, {
        headers: { 'x-gpu-manager-token': tokens.reader ?? '' },
      });
      return `${answer.status} ${await answer.text()}`;
    };
    const refused = /^4\d\d .*the console reads \/api\/node and \/api\/use of agents only/s;
    const agentPod = await agentPodName();
    await until('the policy to count', async () => refused.test(await read(`${agentPod}:${AGENT_PORT}`, '/metrics')));
    t.match(await read(`${agentPod}:${AGENT_PORT}`, '/api/node'), /^200 .*"allocations"/s);
    t.match(await read(`${agentPod}:${AGENT_PORT}`, '/api/use?since=1'), /^200 .*"containers"/s);
    t.match(await read(`${agentPod}:${AGENT_PORT}`, '/api/node/../events'), refused);
    t.match(await read(`console:${CONSOLE_PORT}`, '/api/node'), refused);
  },
);

test('a change reaches readers by stream, and only those who may see it', async (t) => {
  const read = async (user: string): Promise<{ text: string; stop: () => Promise<void> }> => {
    const abort = new AbortController();
    const answer = await fetch(`${base}/api/stream`, {
      headers: { 'x-gpu-manager-token': tokens[user] ?? '' },
      signal: abort.signal,
    });
    const seen = { text: '', stop: async () => abort.abort() };
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>)
        seen.text += decoder.decode(chunk, { stream: true });
    })().catch(() => undefined);
    return seen;
  };
  const operator = await read('operator');
  const researcher = await read('researcher');
  await until(
    'both to have all rows',
    async () => /event: rows/.test(operator.text) && /event: rows/.test(researcher.text),
  );
  await createPod(podObject('streamed', { namespace: 'ads', node: 'small-node', gpus: [1] }));
  await until('the new pod', async () => /event: changes\n.*"streamed"/.test(operator.text));
  await cluster.kubectl('-n', 'ads', 'delete', 'pod', 'streamed', '--wait=false', '--force', '--grace-period=0');
  await until('the pod to go', async () => /event: changes\n.*"gone":\["[0-9a-f-]+"\]/.test(operator.text));
  // What changed just before the researcher came may reach him twice: in all rows, and as a change.
  t.notMatch(researcher.text, /streamed|"gone":\["/);
  await operator.stop();
  await researcher.stop();
});

test(
  'a browser behind kubectl proxy shows the cluster and the document of an agent, without a link to it',
  { skip: noBrowser },
  async (t) => {
    const browser = await openBrowser();
    t.teardown(() => browser.close());
    const context = await browser.newContext(DESKTOP);
    const page = await opened(context, `${base}/`, 'operator');
    await page.locator('a.node', { hasText: NODE }).waitFor();
    await page.evaluate(`location.hash = '#/node/${NODE}'`);
    await page.locator('.gpu').nth(1).waitFor();
    t.match(
      await page.locator('.own-page code').textContent(),
      new RegExp(`^kubectl --namespace kube-system port-forward pod/gpu-manager-[a-z0-9]+ ${AGENT_PORT}$`, 'u'),
    );
    t.equal(await page.locator('a[href*="/pods/"]').count(), 0, 'a page of a node would have the rights of its reader');

    await agent.stop();
    await page.locator('.agent.as-of').waitFor({ timeout: timeLimit(60_000) });
    t.match(await page.locator('.agent').textContent(), /does not answer: .* Figures as of /);
    t.equal(await page.locator('.gpu').count(), 2);
  },
);

test(`${NODES} nodes with ${NODES * 8} pods`, { skip: noBrowser }, async (t) => {
  // Controllers would find that no kubelet answers for these nodes.
  for (const name of ['controller-manager', 'scheduler', 'kubelet']) await cluster.processes.stop(name);
  const before = (await rowsOf('operator')).rows;
  const known = before.pods.length;
  await createAll([...clusterObjects(NODES, 1)].filter(({ object }) => object.metadata.namespace !== 'kube-system'));
  const all = await until(
    'all rows',
    async () => {
      const { rows } = await rowsOf('operator');
      return rows.pods.length >= known + NODES * 8 && rows;
    },
    timeLimit(300_000),
  );
  t.equal(all.nodes.length, before.nodes.length + NODES);
  const browser = await openBrowser();
  t.teardown(() => browser.close());
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const context = await browser.newContext({ ...DESKTOP, bypassCSP: true });
    await context.addInitScript(
      `sessionStorage.setItem('gpu-manager-token ${PROXIED}/', ${JSON.stringify(tokens.operator)})`,
    );
    const page = await context.newPage();
    await page.goto(`${base}/`);
    const shown = await page.waitForFunction("document.querySelector('.bars .segment') && performance.now()");
    times.push(Number(await shown.jsonValue()));
    await context.close();
  }
  times.sort((a, b) => a - b);
  const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  t.comment(`first picture after ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  t.comment(`memory of the console: ${mib(console.residentBytes)}, at most ${mib(console.peakBytes)}`);
  t.equal(times.length, 5);
});
