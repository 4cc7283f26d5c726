import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../src/host/clock.js';
import { KubeClient } from '../src/kube/client.js';
import { kubeconfigCredentials } from '../src/kube/credentials.js';
import { API_VERSION, GROUPS_PATH, GROUP_KIND, LEDGERS_PATH, LEDGER_KIND } from '../src/kube/quota/names.js';
import { TestCluster, whyNoCluster } from '../test/e2e/cluster.js';
import { kubeconfig } from '../test/harness/api-server/kubeconfig.js';
import { referenceMs } from '../test/harness/reference-work.js';
import { deployment } from '../test/quota-controller/cluster.js';
import { installDefinitions, REAL_KUBECONFIG } from '../test/quota-controller/setting.js';
import { cpuSeconds } from './agent/process-cost.js';
import { measured, type Bench, type Measurement } from './report.js';
import { whenReady } from './webhook/ready.js';

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const API_SERVER = fileURLToPath(new URL('webhook/api-server.js', import.meta.url));
const PORT = 18_543;
const GROUPS = 20;
const RATE = 500;
const SECONDS = 10;
/**
 * Connections are made and code is compiled during the first reviews, which have a figure of their own: the CPU time of
 * a review falls until about the 2,700th.
 */
const WARM_UP_SECONDS = 6;
const HOT_DECISIONS = 3000;
const HOT_CONCURRENCY = 64;
/** Plain writes of a ledger, for comparison. */
const BARE_COMMITS = 400;
/** The time of an etcd commit on an ordinary disk. */
const COMMIT_MS = 5;

const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: 128 });

function ask(index: number, group: string): Promise<boolean> {
  const object = { ...deployment(`w${index}`, group, 1, 1), apiVersion: 'apps/v1', kind: 'Deployment' };
  const body = JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: `${index}`,
      operation: 'CREATE',
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      namespace: 'default',
      name: `w${index}`,
      object: { ...object, metadata: { ...object.metadata, namespace: 'default', uid: `uid-${index}` } },
    },
  });
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port: PORT, path: '/workloads', method: 'POST', agent },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(response.statusCode === 200 && text.includes('"allowed":true')));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Durations in milliseconds. */
class Times {
  readonly #sorted: readonly number[];

  constructor(taken: readonly number[]) {
    this.#sorted = [...taken].sort((a, b) => a - b);
  }

  at(share: number): number {
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(this.#sorted.length * share))] ?? NaN;
  }
}

interface Steady {
  /** Milliseconds of each review. */
  readonly reviews: Times;
  /** By how many milliseconds each review was asked too late, because this process was busy. */
  readonly lateness: Times;
}

/** Reviews at a fixed rate, whatever the answers take. */
async function steady(from: number, seconds: number): Promise<Steady> {
  const taken: number[] = [];
  const late: number[] = [];
  const pending: Promise<void>[] = [];
  const failures: unknown[] = [];
  const begun = performance.now();
  for (let index = 0; index < RATE * seconds; index++) {
    const dueMs = begun + (index * 1000) / RATE - performance.now();
    if (dueMs > 0) await delay(dueMs);
    const at = performance.now();
    late.push(at - begun - (index * 1000) / RATE);
    pending.push(
      ask(from + index, `g${index % GROUPS}`)
        .then((isAllowed) => {
          if (isAllowed) taken.push(performance.now() - at);
          else failures.push(new Error('a review was refused'));
        })
        .catch((error: unknown) => void failures.push(error)),
    );
  }
  await Promise.all(pending);
  if (failures.length > 0) throw failures[0];
  return { reviews: new Times(taken), lateness: new Times(late) };
}

async function hot(): Promise<number> {
  let next = 1_000_000;
  const last = next + HOT_DECISIONS;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: HOT_CONCURRENCY }, async () => {
      while (next < last) await ask(next++, `hot-${Math.floor((next - 1_000_000) / 1000)}`);
    }),
  );
  return HOT_DECISIONS / ((performance.now() - begun) / 1000);
}

/** More concurrent requests than fit; returns how many were admitted. */
async function crowd(group: string, count: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: count }, (_, index) => ask(2_000_000 + index, group)));
  return answers.filter(Boolean).length;
}

/** Writes of a ledger without a decision, one after the other: a review cannot be faster. */
async function bare(client: KubeClient): Promise<Times> {
  const path = `${LEDGERS_PATH}/bare`;
  const page = { head: { revision: 1, now: 1, lives: 1 }, children: {}, records: 'x'.repeat(20_000) };
  const made = await client.request({
    method: 'POST',
    path: LEDGERS_PATH,
    body: { apiVersion: API_VERSION, kind: LEDGER_KIND, metadata: { name: 'bare' }, spec: { page } },
  });
  const taken: number[] = [];
  for (let answer = made; taken.length < BARE_COMMITS;) {
    if (!answer.ok) throw new Error(answer.message);
    const { metadata } = answer.body as { readonly metadata: object };
    const at = performance.now();
    answer = await client.request({
      method: 'PUT',
      path,
      body: {
        apiVersion: API_VERSION,
        kind: LEDGER_KIND,
        metadata,
        spec: { page: { ...page, records: `${taken.length}`.padEnd(20_000, 'x') } },
      },
    });
    taken.push(performance.now() - at);
  }
  await client.request({ method: 'DELETE', path });
  return new Times(taken);
}

/** An API server for the measurement. */
interface Setting {
  readonly name: string;
  readonly kubeconfig: string;
  /** Processes of the server by name; none if this benchmark did not start it. */
  readonly processes: Readonly<Record<string, number>>;
  readonly stop: () => Promise<void>;
}

async function played(directory: string): Promise<Setting> {
  const child = fork(API_SERVER, [`${COMMIT_MS}`]);
  const [url] = (await once(child, 'message')) as [string];
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, kubeconfig({ url }, {}));
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.disconnect();
    await ended;
  };
  return { name: 'played', kubeconfig: file, processes: { 'API server': pidOf(child) }, stop };
}

/** The server of `KUBECONFIG_E2E`, or one that is started with `--real`; states the reason if there is neither. */
async function real(args: readonly string[]): Promise<Setting | string> {
  if (REAL_KUBECONFIG !== undefined)
    return { name: 'real', kubeconfig: REAL_KUBECONFIG, processes: {}, stop: async () => undefined };
  if (!args.includes('--real')) return 'neither KUBECONFIG_E2E nor --real';
  const reason = whyNoCluster();
  if (reason !== null) return reason;
  const cluster = new TestCluster();
  await cluster.startServer();
  const processes = { 'API server': cluster.processes.pidOf('apiserver'), etcd: cluster.processes.pidOf('etcd') };
  return { name: 'real', kubeconfig: cluster.kubeconfig, processes, stop: () => cluster.stop() };
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('a process of the benchmark did not start');
  return pid;
}

/** The webhooks of `gpu-manager quota serve` in a process of their own, called from this one. */
async function measure(setting: Setting, report: (figure: Measurement) => void): Promise<void> {
  const client = new KubeClient({
    credentials: await kubeconfigCredentials(setting.kubeconfig, systemClock),
    clock: systemClock,
    userAgent: 'bench',
  });
  await installDefinitions(client);
  const hard = (name: string): number => (name === 'crowd' ? 100 : 1_000_000);
  for (const name of [
    ...Array.from({ length: GROUPS }, (_, index) => `g${index}`),
    'hot-0',
    'hot-1',
    'hot-2',
    'hot-3',
    'crowd',
  ]) {
    const answer = await client.request({
      method: 'POST',
      path: GROUPS_PATH,
      body: {
        apiVersion: API_VERSION,
        kind: GROUP_KIND,
        metadata: { name },
        spec: { hard: { 'limits.cpu': hard(name) } },
      },
    });
    if (!answer.ok) throw new Error(answer.message);
  }
  const service: ChildProcess = spawn(
    process.execPath,
    [
      MAIN,
      'quota',
      'serve',
      '--kubeconfig',
      setting.kubeconfig,
      '--address',
      '127.0.0.1',
      '--port',
      `${PORT}`,
      // Reviews come from this process, and not on a secret path.
      '--no-register',
      '--namespace',
      'default',
      '--log-level',
      'error',
    ],
    { stdio: 'inherit' },
  );
  try {
    await whenReady(PORT, agent);
    await delay(2000);
    const alone = await bare(client);
    const { reviews: first } = await steady(0, WARM_UP_SECONDS);
    const processes = { service: pidOf(service), ...setting.processes, caller: process.pid };
    const cpu = (): readonly (readonly [string, number])[] =>
      Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)]);
    const before = cpu();
    const { reviews: taken, lateness } = await steady(RATE * WARM_UP_SECONDS, SECONDS);
    const after = cpu();
    const figure = (name: string, value: number, unit: string, baseline: number | null = null): void =>
      report(measured(`${name} (${setting.name} API server)`, value, unit, baseline));
    figure('bare commit p50', alone.at(0.5), 'ms');
    figure('bare commit p99', alone.at(0.99), 'ms');
    figure('review p50, beside a commit', taken.at(0.5), 'ms', alone.at(0.5));
    figure('review p99, beside a commit', taken.at(0.99), 'ms', alone.at(0.99));
    const reference = referenceMs();
    figure('review p99 beyond a commit', taken.at(0.99) - alone.at(0.5), 'ms', reference);
    figure(`review p99 in the first ${WARM_UP_SECONDS} s`, first.at(0.99), 'ms', alone.at(0.99));
    figure('asked too late p99', lateness.at(0.99), 'ms');
    for (const [index, [name, seconds]] of after.entries())
      figure(`CPU of the ${name}`, ((seconds - (before[index]?.[1] ?? NaN)) * 1e6) / (RATE * SECONDS), 'us/review');
    figure('admissions of one hot group', await hot(), '1/s', 1_000 / reference);
    figure('let in of 300 where 100 fit', await crowd('crowd', 300), 'workloads', 100);
  } finally {
    const ended = new Promise((resolve) => service.once('exit', resolve));
    service.kill('SIGKILL');
    await ended;
    client.close();
  }
}

/**
 * What the quota webhook adds to a write: reviews at a fixed rate and as many as it takes, against a played API server
 * and, where one is built, a real one.
 *
 *     npm run bench -- webhook [--real [--real-only]]
 */
export const run: Bench = async ({ report, note, args }) => {
  const directory = mkdtempSync(join(tmpdir(), 'gm-webhook-'));
  try {
    const settings: Setting[] = args.includes('--real-only') ? [] : [await played(directory)];
    const other = await real(args);
    if (typeof other === 'string') note(`not with a real API server: ${other}`);
    else settings.push(other);
    note(
      `${RATE} reviews/s for ${SECONDS} s over ${GROUPS} groups; the service, its caller and the played API server are processes of their own, and a commit takes ${COMMIT_MS} ms`,
    );
    for (const setting of settings) {
      try {
        await measure(setting, report);
      } finally {
        await setting.stop();
      }
    }
  } finally {
    agent.destroy();
    rmSync(directory, { recursive: true, force: true });
  }
};
