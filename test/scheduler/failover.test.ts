import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import type { BindingResult, FilterResult } from '../../src/scheduler/results.js';
import type { KubeObject } from '../harness/api-server/kube-object.js';
import { kubeconfig } from '../harness/api-server/kubeconfig.js';
import { until } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';
import { apiServer } from '../kube/setting.js';
import { node, pod, type PodObject } from './objects.js';
import { post } from './scheduler.js';

/** Deaths of the replica that answers. */
const DEATHS = 3;

interface Replica {
  readonly url: string;
  readonly child: ChildProcess;
}

async function replica(t: Test, config: string): Promise<Replica> {
  const port = await freePort();
  const flags = [`--address=127.0.0.1:${port}`, `--kubeconfig=${config}`, '--lease=kube-system/gpu-extender'];
  const child = spawn(process.execPath, [MAIN, 'extender', ...flags, '--log-level=error'], { stdio: 'ignore' });
  t.teardown(() => void child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await until(
    'a replica to list the cluster',
    async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok ?? false,
  );
  return { url, child };
}

const filter = ({ url }: Replica, wanted: PodObject): Promise<FilterResult> =>
  post(`${url}/scheduler/predicates`, { Pod: wanted, Nodes: null, NodeNames: ['n'] });

const bind = ({ url }: Replica, { metadata }: PodObject): Promise<BindingResult> =>
  post(`${url}/scheduler/bind`, {
    PodName: metadata?.name,
    PodNamespace: metadata?.namespace,
    PodUID: metadata?.uid,
    Node: 'n',
  });

test('another replica answers soon after the one that answers was killed, and gives no GPU twice', async (t) => {
  const server = await apiServer(t);
  server.seed('nodes', node('n', [16, 16, 16, 16]) as KubeObject);
  const config = join(t.testdir(), 'kubeconfig');
  writeFileSync(config, kubeconfig({ url: server.url }, {}));
  let answering = await replica(t, config);
  const placed: string[] = [];
  for (let death = 0; death <= DEATHS; death++) {
    const wanted = pod(`p${death}`, [[60, 4]]);
    server.seed('pods', wanted as KubeObject);
    const started = performance.now();
    await until('a replica to answer', async () => (await filter(answering, wanted)).Error === '', timeLimit(30_000));
    const ms = performance.now() - started;
    if (death > 0)
      t.comment(`the next replica answered ${(ms / 1_000).toFixed(1)} s after the death of the one before`);
    t.same((await bind(answering, wanted)).Error, '');
    placed.push(
      server.read('pods', 'default', `p${death}`)?.metadata.annotations?.['tencent.com/predicate-gpu-idx-0'] ?? '?',
    );
    if (death === DEATHS) break;
    const next = await replica(t, config);
    const gone = once(answering.child, 'exit');
    answering.child.kill('SIGKILL');
    await gone;
    answering = next;
  }
  t.same(placed.sort(), ['0', '1', '2', '3'], 'each pod has a GPU of its own');
});
