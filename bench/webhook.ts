import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiServer } from '../test/harness/api-server/api-server.js';
import { kubeconfig } from '../test/harness/api-server/kubeconfig.js';
import { deployment } from '../test/quota/kube/cluster.js';
import { CRDS } from '../test/quota/kube/setting.js';
import { measured, type Bench } from './report.js';

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const PORT = 18_543;
const GROUPS = 20;
const RATE = 500;
const SECONDS = 10;
const HOT_DECISIONS = 3000;
const HOT_CONCURRENCY = 64;
/** What a commit of etcd takes on an ordinary disk. */
const COMMIT_MS = 5;
/** Goals of the design. */
const GOAL_P99_MS = 5;
const GOAL_HOT = 300;

const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: 128 });

function ask(index: number, group: string): Promise<boolean> {
  const object = { ...deployment(`w${index}`, group, 1, 1), apiVersion: 'apps/v1', kind: 'Deployment' };
  const body = JSON.stringify({
    apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview',
    request: { uid: `${index}`, operation: 'CREATE', resource: { group: 'apps', version: 'v1', resource: 'deployments' }, namespace: 'default', name: `w${index}`, object: { ...object, metadata: { ...object.metadata, namespace: 'default', uid: `uid-${index}` } } },
  });
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port: PORT, path: '/workloads', method: 'POST', agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(response.statusCode === 200 && text.includes('"allowed":true')));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function ready(): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const isReady = await new Promise<boolean>((resolve) => {
      request({ host: '127.0.0.1', port: PORT, path: '/readyz', agent }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      }).on('error', () => resolve(false)).end();
    });
    if (isReady) return;
    await delay(100);
  }
  throw new Error('the quota service did not become ready');
}

/** Reviews at a fixed rate, whatever the answers take; milliseconds of each. */
async function steady(): Promise<readonly number[]> {
  const taken: number[] = [];
  const pending: Promise<void>[] = [];
  const failures: unknown[] = [];
  const begun = performance.now();
  for (let index = 0; index < RATE * SECONDS; index++) {
    const dueMs = begun + (index * 1000) / RATE - performance.now();
    if (dueMs > 0) await delay(dueMs);
    const at = performance.now();
    pending.push(ask(index, `g${index % GROUPS}`).then((isAllowed) => {
      if (isAllowed) taken.push(performance.now() - at);
      else failures.push(new Error('a review was refused'));
    }).catch((error: unknown) => void failures.push(error)));
  }
  await Promise.all(pending);
  if (failures.length > 0) throw failures[0];
  return taken.sort((a, b) => a - b);
}

async function hot(): Promise<number> {
  let next = 1_000_000;
  const last = next + HOT_DECISIONS;
  const begun = performance.now();
  await Promise.all(Array.from({ length: HOT_CONCURRENCY }, async () => {
    while (next < last) await ask(next++, `hot-${Math.floor((next - 1_000_000) / 1000)}`);
  }));
  return HOT_DECISIONS / ((performance.now() - begun) / 1000);
}

/** The webhooks of `gpu-manager quota serve` as a process of its own, asked from this one, which also plays the API server. */
export const run: Bench = async ({ report, note }) => {
  const directory = mkdtempSync(join(tmpdir(), 'gm-webhook-'));
  const server = new ApiServer();
  await server.start();
  for (const definition of CRDS) server.seed('customresourcedefinitions', definition);
  for (const name of [...Array.from({ length: GROUPS }, (_, index) => `g${index}`), 'hot-0', 'hot-1', 'hot-2', 'hot-3']) {
    server.seed('bizgroupresourcequotas', { metadata: { name }, spec: { hard: { 'limits.cpu': 1_000_000 } } });
  }
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, kubeconfig({ url: server.url }, {}));
  const service: ChildProcess = spawn(process.execPath, [MAIN, 'quota', 'serve', '--kubeconfig', file, '--address', '127.0.0.1', '--port', `${PORT}`, '--url', `https://127.0.0.1:${PORT}`, '--log-level', 'error'], { stdio: 'inherit' });
  try {
    await ready();
    await delay(2000);
    const taken = await steady();
    const at = (share: number): number => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? NaN;
    report(measured('review p50', at(0.5), 'ms'));
    report(measured('review p99 (goal)', at(0.99), 'ms', GOAL_P99_MS));
    server.inject({ verb: 'update', resource: 'bizgroupledgers' }, { do: 'delay', ms: COMMIT_MS });
    const before = server.requests.filter(({ verb, resource }) => verb === 'update' && resource === 'bizgroupledgers').length;
    const rate = await hot();
    const writes = server.requests.filter(({ verb, resource }) => verb === 'update' && resource === 'bizgroupledgers').length - before;
    report(measured('one hot group, commits of 5 ms (goal)', rate, 'admissions/s', GOAL_HOT));
    report(measured('writes a decision', writes / HOT_DECISIONS, 'writes'));
    note(`${RATE} reviews/s for ${SECONDS} s over ${GROUPS} groups; the API server is played by the process that asks`);
  } finally {
    service.kill('SIGKILL');
    agent.destroy();
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
};
