import { join } from 'node:path';
import { test } from 'tap';
import { silentLog } from '../../src/host/log.js';
import { DemoCluster, LIVE_NODE } from '../../src/simulation/demo-cluster.js';
import { SimulatedNode } from '../../src/simulation/simulated-node.js';
import { Commands } from '../cli/commands.js';
import { eventually } from '../harness/eventually.js';
import { timeLimit } from '../harness/time-factor.js';
import { scratchDirectory } from '../scratch.js';

type Row = Readonly<Record<string, unknown>>;
type Rows = Readonly<Record<'nodes' | 'pods' | 'claims' | 'groups' | 'shares' | 'events', readonly Row[]>>;

const timeout = timeLimit(120_000);

test('the cluster of the demonstration fills every view of the console', { timeout }, async (t) => {
  const directory = await scratchDirectory(t);
  const cluster = new DemoCluster({ directory, log: silentLog(), console: { port: 0, address: '127.0.0.1' } });
  t.teardown(() => cluster.stop());
  await cluster.open();
  const live = new SimulatedNode({
    directory: join(directory, 'live'),
    gpus: '{"gpus":[{},{},{},{}]}',
    log: silentLog(),
    knowsPods: true,
    config: { standalone: false, kubeconfig: cluster.kubeconfigPath, nodeName: LIVE_NODE },
  });
  await live.start();
  t.teardown(() => live.stop());
  await cluster.start(live, []);
  const read = async (path: string): Promise<unknown> =>
    (await fetch(`http://127.0.0.1:${cluster.port}${path}`)).json();
  const rows = await eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${cluster.port}/api/cluster`);
    if (!answer.ok) return null;
    const { rows: told } = (await answer.json()) as { readonly rows: Rows };
    const isWhole =
      told.shares.length > 0 && told.groups.length > 0 && told.claims.length > 0 && told.events.length > 0;
    return isWhole && told.nodes.length === 4 ? told : null;
  }, 'the console has listed the cluster');

  t.same(
    rows.nodes.map(({ name, isReady, late, problem }) => [name, isReady, late, problem]).sort(),
    ['gpu-a10-1', 'gpu-h100-1', 'gpu-l40s-1', 'gpu-v100-1'].map((name) => [name, true, undefined, undefined]),
  );
  const waiting = rows.pods.filter(({ state }) => state === 'waiting');
  t.same(waiting.map(({ name }) => name).sort(), [
    ...['asr-train-0-f2j9n', 'asr-train-1-p6c8s', 'asr-train-2-x4d7z'],
    ...['index-builder-0', 'llm-pretrain-0-b7t5q', 'tracker-0'],
  ]);
  for (const { name, why } of waiting) t.match(why, /nodes are available|pod group/, `${String(name)} has a reason`);
  t.ok(
    rows.pods.filter(({ state }) => state === 'running').length >= 13,
    'every other pod runs on the GPU that its annotation names',
  );
  t.match(rows.claims.map(({ state }) => state).sort(), ['reserved', 'reserved', 'waiting']);
  t.match(
    rows.groups.find(({ name }) => name === 'vision'),
    { limits: [{ key: 'gpus', used: '3', hard: '3', part: 1 }] },
  );
  t.match(
    rows.groups.find(({ name }) => name === 'research'),
    { hours: [{ key: 'gpus', hard: '40', left: /./, rate: /./ }] },
    'hours are used since the pods started',
  );
  t.equal(rows.shares.length, 3);
  t.match(
    rows.events.find(({ kind }) => kind === 'FailedCreate'),
    { message: /vision/ },
  );

  const explained = async (name: string): Promise<Row> => {
    const uid = String(waiting.find((pod) => pod['name'] === name)?.['uid']);
    const answer = (await read(`/api/explain?pod=${encodeURIComponent(uid)}`)) as { readonly explanation: Row };
    return answer.explanation;
  };
  t.match(await explained('llm-pretrain-0-b7t5q'), {
    fit: 0,
    nearest: { node: 'gpu-h100-1', mayPreempt: true, pods: [{ name: /llm-finetune/ }] },
  });
  t.match(await explained('asr-train-0-f2j9n'), { gang: /0 of 3 pods have a node, it needs 3 together/ });
  t.match(await explained('index-builder-0'), {
    fit: 0,
    nodes: [{ node: 'gpu-a10-1', reason: /80 cores/ }, {}, {}, {}],
    nearest: { node: 'gpu-a10-1', mayPreempt: false, pods: [{ namespace: 'search', name: /^claim a10-/ }] },
  });
  t.match(await explained('tracker-0'), { noGpu: /nvidia\.com\/gpu/ });
  t.match(await read('/api/node?name=gpu-h100-1'), { ok: true });

  const commands = new Commands();
  t.teardown(() => commands.close());
  const detector = String(rows.pods.find(({ name }) => String(name).startsWith('detector-'))?.['name']);
  const run = (...args: readonly string[]) =>
    commands.run({
      program: 'kubectl-gpu',
      args,
      env: { PATH: process.env['PATH'] ?? '', HOME: directory, KUBECONFIG: cluster.kubeconfigPath },
      ...{ directory, input: '' },
    });
  t.match(await run('quota', 'tree'), {
    code: 0,
    out: /^GROUP +KEY +HARD.*\ncompany +gpus +19\.6 .*\n {2}research +gpus/,
  });
  t.match(await run('quota', 'explain', 'bizrq/vision'), {
    code: 0,
    out: /Job\.batch\/vision\/video-index +vision +1 +gpus +1 /,
  });
  t.match(await run('explain', 'llm-pretrain-0-b7t5q', '-n', 'research'), {
    code: 1,
    out: /\n {2}of Job research\/llm-pretrain\nallowed {2}Job\.batch\/research\/llm-pretrain /,
  });
  t.match(await run('quota', 'explain', 'job/llm-finetune', '-n', 'research'), {
    code: 0,
    out: /allowed {2}Job\.batch\/research\/llm-finetune in research/,
  });
  const held = await eventually(async () => {
    const { out } = await run('usage', '--by', 'pod', '-n', 'research');
    return out.includes('research/llm-finetune-0-q8x2v') ? out : null;
  }, 'agents count the GPU-hours of pods');
  t.match(held, /^POD +ALLOCATED +USED +USE +PODS\n/);
  t.match(await run('throttling', detector, '-n', 'vision'), { code: 0, out: /^CONTAINER +GPU .*\nmain +4 / });
  const set = (...args: readonly string[]) => run('limits', 'set', detector, '-n', 'vision', '--wait', '60', ...args);
  t.match(
    await set('--cores', '20', '--priority', 'low'),
    { code: 0, out: /: applied\n$/ },
    'the agent follows annotations',
  );
});
