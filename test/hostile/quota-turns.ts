import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import type { Test } from 'tap';
import { API_VERSION, GROUP_KIND } from '../../src/kube/quota/names.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MeteredProgram } from '../harness/metered-program.js';
import { holdsTurns } from '../harness/turn-limit.js';
import { deployment } from '../quota-controller/cluster.js';
import { quotaServer } from '../quota-controller/setting.js';
import { scratchDirectory } from '../scratch.js';

const GROUP = 'g';

export interface QuotaLoad {
  readonly workloads: number;
  /** How many of them change at once. */
  readonly changes: number;
  /** How long the service only refreshes, and then, how long it lists all anew. */
  readonly restMs: number;
  /** How often eight readers at once read. */
  readonly reads: number;
}

/**
 * Tests that in a quota service with many workloads in one group neither its start, nor changes of the group, nor many
 * changes at once, nor readers take a long turn of its event loop, for the reviews of all others wait for it.
 */
export async function holdsQuotaTurns(t: Test, { workloads, changes, restMs, reads }: QuotaLoad): Promise<void> {
  const server = await quotaServer({ recordsRequests: false });
  t.teardown(() => server.stop());
  const group = (cpu: number): object => ({ hard: { 'limits.cpu': cpu, 'count/deployments.apps': 1_000_000 } });
  server.seed('bizgroupresourcequotas', {
    apiVersion: API_VERSION,
    kind: GROUP_KIND,
    metadata: { name: GROUP },
    spec: { ...group(1_000_000), namespaceSelector: {} },
  });
  const name = (at: number): string => `web-${at}`;
  for (let at = 0; at < workloads; at += 1) server.seed('deployments', { ...deployment(name(at), GROUP, 1, 1) });
  const directory = await scratchDirectory(t);
  const file = join(directory, 'kubeconfig');
  writeFileSync(file, kubeconfig(server, { token: 'webhook' }));
  const port = await freePort();
  const program = new MeteredProgram([
    ...['quota', 'serve', '--kubeconfig', file, '--address', '127.0.0.1', '--port', `${port}`, '--no-register'],
    ...['--namespace', 'default', '--log-level', 'warn', '--lease-duration', '3', '--refresh-period', '1'],
  ]);
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  t.teardown(async () => {
    agent.destroy();
    await program.stop();
  });
  const get = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path, agent }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.on('end', () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(`${answer.statusCode}`))));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  const used = (): unknown => {
    const { status } = server.read('bizgroupresourcequotas', '', GROUP) as {
      readonly status?: { readonly used?: Record<string, string> };
    };
    return status?.used?.['limits.cpu'];
  };
  const held = (what: string, task: () => Promise<void>): Promise<void> =>
    holdsTurns(t, what, () => program.longestTurn(task));
  await until('the service to be ready', async () => get('/readyz').then(() => true, () => false), 300_000); // prettier-ignore
  await until('all workloads to be charged', async () => used() === String(workloads), 120_000);
  await held('full refreshes', () => new Promise((resolve) => setTimeout(resolve, restMs)));
  let cpu = 1_000_000;
  await held('a change of the group', async () => {
    cpu += 1;
    const spec = { ...group(cpu), namespaceSelector: {} };
    server.edit('bizgroupresourcequotas', '', GROUP, (object) => ({ ...object, spec }));
    const hard = (): unknown => {
      const { status } = server.read('bizgroupresourcequotas', '', GROUP) as {
        readonly status?: { readonly hard?: Record<string, string> };
      };
      return status?.hard?.['limits.cpu'];
    };
    await until('the change to be known', async () => hard() === String(cpu));
  });
  let replicas = 1;
  await held(`${changes} changes at once`, async () => {
    replicas += 1;
    for (let at = 0; at < changes; at += 1)
      server.edit('deployments', 'default', name(at), (object) => ({
        ...object,
        spec: { ...(object.spec as object), replicas },
      }));
    await until('the changes to be charged', async () => used() === String(workloads + changes * (replicas - 1)));
  });
  await held('readers of the metrics', async () => {
    for (let time = 0; time < reads; time += 1) await Promise.all(Array.from({ length: 8 }, () => get('/metrics')));
  });
  await held('watches that end, and a list of all', async () => {
    for (const watch of server.watches()) watch.expire();
    await new Promise((resolve) => setTimeout(resolve, restMs));
  });
}
