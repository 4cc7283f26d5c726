import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'tap';
import { History, type HistoryAnswer } from '../../src/console/history.js';
import type { UsageBy } from '../../src/console/gpu-hours.js';
import { hoursOfPrometheus } from '../../src/console/prometheus-hours.js';
import { Prometheus, MAX_SERIES } from '../../src/console/prometheus.js';
import { EVERYTHING } from '../../src/console/scope.js';
import { METRICS } from '../../src/agent/display/metrics.js';
import { certificateAuthority } from '../harness/certificate.js';
import { eventually } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { ManualClock } from '../manual-clock.js';
import { scratchDirectory } from '../scratch.js';
import { nodeObject, podObject } from './cluster-objects.js';
import { runningConsole, type RunningConsole } from './fixture.js';
import { listening, rangeHandler } from './prometheus-server.js';

const NO_FILES = { caFile: null, tokenFile: null };
const QUERY = { query: 'vgpu_gpus', endMs: 1_700_000_000_000, stepMs: 24_000, points: 150 };

test('values are placed at the moments that were asked for', async (t) => {
  const asked: URL[] = [];
  const last = QUERY.endMs / 1_000;
  const url = await listening(
    t,
    rangeHandler(
      () => [
        { metric: { gpu: '0' }, at: (seconds) => (seconds === last ? 'NaN' : seconds === last - 48 ? null : 0.25) },
        { metric: { gpu: '1' }, at: (seconds) => (seconds === last ? 1 : null) },
      ],
      asked,
    ),
  );
  const answer = await new Prometheus({ url: new URL('sub/path', url), ...NO_FILES }).range(QUERY);
  if (!answer.ok) throw new Error(answer.reason);
  const [first, second] = answer.series;
  t.same(first?.labels, { gpu: '0' });
  t.equal(first?.values.length, 150);
  t.same(first?.values.slice(-4), [0.25, null, 0.25, null]);
  t.same(second?.values.slice(-2), [null, 1]);
  t.equal(asked[0]?.pathname, '/sub/path/api/v1/query_range');
  t.same(Object.fromEntries(asked[0]?.searchParams ?? []), {
    query: 'vgpu_gpus',
    ...{ start: String(last - 149 * 24), end: String(last), step: '24', timeout: '5000ms', limit: '64' },
  });
});

test('a Prometheus that is away or answers something else gives a sentence', async (t) => {
  const reasonOf = async (url: URL, changes: object = {}) => {
    const answer = await new Prometheus({ url, ...NO_FILES, ...changes }).range(QUERY);
    return answer.ok ? 'an answer' : answer.reason;
  };
  const gone = new URL(`http://127.0.0.1:${await freePort()}/`);
  t.equal(await reasonOf(gone), 'Prometheus does not answer: ECONNREFUSED');
  const answers = (status: number, body: string, headers = {}) =>
    listening(t, (_request, response) => void response.writeHead(status, headers).end(body));
  const error = { status: 'error', errorType: 'timeout', error: 'query timed out in expression evaluation' };
  t.equal(
    await reasonOf(await answers(503, JSON.stringify(error))),
    'Prometheus refuses the query: query timed out in expression evaluation',
  );
  const wrong = /^no API of Prometheus answers there \(status \d+\): check --prometheus-url$/;
  t.match(await reasonOf(await answers(404, '404 page not found')), wrong);
  t.match(await reasonOf(await answers(302, '', { location: 'http://127.0.0.1:1/' })), wrong);
  t.match(await reasonOf(await answers(200, '<html>sign in</html>')), wrong);
  t.match(await reasonOf(await answers(200, '{"status":"success","data":{"resultType":"vector","result":[]}}')), wrong);
  t.match(await reasonOf(await answers(200, '[]')), wrong);
  t.match(await reasonOf(await answers(401, 'Unauthorized')), /refuses the token \(401\): check --prometheus-token/);
  t.match(await reasonOf(await answers(200, 'x'.repeat(2_000)), { largestBytes: 1_000 }), /has more than 1000 bytes/);
  const silent = await listening(t, () => undefined);
  t.equal(await reasonOf(silent, { timeoutMs: 50 }), 'Prometheus has not answered within 0.05 s');
  const slow = await listening(t, (_request, response) => void response.write('{'));
  t.equal(await reasonOf(slow, { timeoutMs: 50 }), 'Prometheus has not answered within 0.05 s');
  t.equal(
    await reasonOf(silent, { tokenFile: '/no/such/file' }),
    'the file of --prometheus-token-file cannot be read: there is no such file or directory',
  );
});

test('more series than a page can show are dropped', async (t) => {
  const many = Array.from({ length: 200 }, (_, at) => ({ metric: { gpu: String(at) }, at: () => at }));
  const answer = await new Prometheus({
    url: await listening(
      t,
      rangeHandler(() => many),
    ),
    ...NO_FILES,
  }).range(QUERY);
  t.equal(answer.ok && answer.series.length, MAX_SERIES);
});

test('the token is read for every query, and the certificate is verified', async (t) => {
  const directory = await scratchDirectory(t);
  const authority = await certificateAuthority();
  const tokens: (string | undefined)[] = [];
  const handler = rangeHandler(() => []);
  const url = await listening(
    t,
    (request, response, at) => {
      tokens.push(request.headers.authorization);
      handler(request, response, at);
    },
    await authority.server(['127.0.0.1']),
  );
  const [caFile, tokenFile] = ['ca.crt', 'token'].map((name) => join(directory, name)) as [string, string];
  await writeFile(caFile, authority.certificate);
  const prometheus = new Prometheus({ url, caFile, tokenFile });
  for (const token of ['first', 'second']) {
    await writeFile(tokenFile, `${token}\n`);
    t.match(await prometheus.range(QUERY), { ok: true });
  }
  t.same(tokens, ['Bearer first', 'Bearer second']);
  const stranger = await new Prometheus({ url, caFile: null, tokenFile }).range(QUERY);
  t.match(stranger, { ok: false, reason: /^Prometheus does not answer: \S+/ });
  t.equal(tokens.length, 2, 'a server that is not verified gets no token');
});

async function historyOf(console: RunningConsole, user: string, of: string, name = '', range = '1h') {
  const answer = await console.get(`/api/history?of=${of}&name=${name}&range=${range}`, user);
  return answer.status === 200 ? ((await answer.json()) as HistoryAnswer) : answer.status;
}

test('a user gets the history of what the user may see', async (t) => {
  const asked: URL[] = [];
  const url = await listening(
    t,
    rangeHandler(() => [{ metric: {}, at: () => 0.5 }], asked),
  );
  const console = await runningConsole(
    t,
    (server) => {
      server.seed('nodes', nodeObject('gpu-node-1', { gpus: 2 }));
      for (const namespace of ['research', 'vision', 'ads'])
        server.seed('pods', podObject('bert', { namespace, node: 'gpu-node-1', gpus: [0] }));
    },
    { prometheus: { url, ...NO_FILES } },
  );
  const queries = async (user: string, of: string, name = '') => {
    asked.length = 0;
    const answer = await historyOf(console, user, of, name);
    return typeof answer === 'number' ? answer : asked.map((one) => one.searchParams.get('query'));
  };
  const ofResearcher = await queries('researcher', 'cluster');
  t.ok(Array.isArray(ofResearcher) && ofResearcher.length === 3);
  for (const query of ofResearcher as string[]) t.match(query, /\{namespace=~"research\|vision"\}/);
  t.equal(await queries('researcher', 'node', 'gpu-node-1'), 404);
  t.equal(await queries('researcher', 'pod', 'ads-bert'), 404);
  t.match(await queries('researcher', 'pod', 'research-bert'), [/\{namespace="research",pod="bert"\}/]);
  t.match(await queries('operator', 'node', 'gpu-node-1'), [/\{uuid=~"GPU-gpu-node-1-0\|GPU-gpu-node-1-1"\}/]);
  t.same(await queries('technician', 'pod', 'ads-bert'), 404);
  for (const wrong of ['of=pod&name=x&range=1h', 'of=cluster&range=10y', 'of=up&range=1h', 'of=constructor&range=1h'])
    t.equal((await console.get(`/api/history?${wrong}`)).status, 404, wrong);
  t.equal((await console.get('/api/history?of=cluster&range=1h', null)).status, 401);
  const answer = await historyOf(console, 'operator', 'cluster');
  t.match(answer, { ok: true, charts: [{ title: 'Allocated', unit: 'percent' }, {}, { title: 'Utilization' }] });
});

test('readers together ask Prometheus once, and not without end', async (t) => {
  const clock = new ManualClock();
  let under = 0;
  const prometheus = {
    range: () => {
      under += 1;
      return new Promise<never>(() => undefined);
    },
  };
  const pod = { namespace: 'a', name: 'b' };
  let name = 0;
  const model = { node: () => null, pod: () => ({ ...pod, name: `pod-${name}` }) };
  const history = new History({
    prometheus,
    clock,
    model: model as unknown as ConstructorParameters<typeof History>[0]['model'],
  });
  void history.read({ of: 'cluster', name: '', range: '1h' }, EVERYTHING);
  void history.read({ of: 'cluster', name: '', range: '1h' }, EVERYTHING);
  t.equal(under, 3);
  const answers = Array.from({ length: 5 }, () => {
    name += 1;
    return history.read({ of: 'pod', name: '', range: '7d' }, EVERYTHING);
  });
  t.ok(under <= 12);
  t.match(await answers[4], { ok: false, reason: 'too many queries for Prometheus are under way' });
});

test('queries name metrics of the agent', async (t) => {
  const names = new Set(METRICS.map(({ name }) => name));
  const queries: string[] = [];
  const prometheus = {
    range: async ({ query }: { readonly query: string }) => {
      queries.push(query);
      return { ok: true as const, series: [] };
    },
  };
  const model = {
    node: () => ({ gpus: [{ gpu: { uuid: 'GPU-1' } }] }),
    pod: () => ({ namespace: 'a', name: 'b' }),
  } as unknown as ConstructorParameters<typeof History>[0]['model'];
  const history = new History({ prometheus, clock: new ManualClock(), model });
  for (const of of ['cluster', 'node', 'pod']) await history.read({ of, name: 'x', range: '1h' }, EVERYTHING);
  await history.read({ of: 'cluster', name: '', range: '1h' }, { tables: new Map([['pods', null]]) });
  t.ok(queries.length > 10);
  for (const query of queries)
    for (const [name] of query.matchAll(/vgpu_\w+/gu)) t.ok(names.has(name), `${name} in ${query}`);
});

const installed = ['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0);

test(
  'a real Prometheus answers these queries',
  { skip: installed ? false : 'Prometheus is not installed' },
  async (t) => {
    const directory = await scratchDirectory(t);
    const now = Math.floor(Date.now() / 1_000);
    const moments = Array.from({ length: 60 }, (_, at) => now - 3_600 + at * 60);
    const gpu = '{gpu="0",uuid="GPU-gpu-node-1-0"}';
    const container = '{namespace="research",pod="bert",container="main",gpu="0"}';
    const lines = [
      ['vgpu_gpu_utilization_ratio', gpu, 0.5],
      ['vgpu_gpu_given_ratio', gpu, 0.3],
      ['vgpu_gpu_memory_bytes', gpu, 100],
      ['vgpu_gpu_memory_used_bytes', gpu, 25],
      ['vgpu_container_used_ratio', container, 0.2],
      ['vgpu_container_limit_ratio', container, 0.3],
      ['vgpu_container_memory_used_bytes', container, 20],
      ['vgpu_container_memory_limit_bytes', container, 40],
      ...[1, 2].flatMap((at): readonly [string, string, number][] => {
        const instance = `instance="10.0.0.${at}:5678"`;
        const labels = `${instance},namespace="team-${at}",pod="train",container="main"`;
        return [
          ['vgpu_gpus', `{${instance}}`, 2],
          ['vgpu_build_info', `{${instance},version="1",node="gpu-node-${at}"}`, 1],
          ['vgpu_allocation_info', `{${labels},allocation="${at}",quota_group="${at === 1 ? 'science' : ''}"}`, 1],
          ['vgpu_container_requested_ratio', `{${labels},gpu="0"}`, 0.5],
          ['vgpu_container_requested_ratio', `{${labels},gpu="1"}`, 1],
          ['vgpu_container_used_ratio', `{${labels},gpu="0"}`, 0.3],
        ];
      }),
    ].flatMap(([name, labels, value]) => [
      `# TYPE ${name} gauge`,
      ...moments.map((seconds) => `${name}${labels} ${value} ${seconds}`),
    ]);
    await writeFile(join(directory, 'samples'), `${lines.join('\n')}\n# EOF\n`);
    await mkdir(join(directory, 'data'));
    const [samples, data] = ['samples', 'data'].map((name) => join(directory, name)) as [string, string];
    execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', samples, data], { stdio: 'ignore' });
    await writeFile(join(directory, 'prometheus.yml'), 'scrape_configs: []\n');
    const port = await freePort();
    const server = spawn(
      'prometheus',
      [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${data}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    t.teardown(async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGKILL');
      await ended;
    });
    const url = new URL(`http://127.0.0.1:${port}/`);
    await eventually(
      async () =>
        fetch(new URL('-/ready', url)).then(
          ({ ok }) => ok,
          () => false,
        ),
      'Prometheus is ready',
      30_000,
    );
    const console = await runningConsole(
      t,
      (api) => {
        api.seed('nodes', nodeObject('gpu-node-1', { gpus: 1 }));
        api.seed('pods', podObject('bert', { namespace: 'research', node: 'gpu-node-1', gpus: [0] }));
      },
      { prometheus: { url, ...NO_FILES } },
    );
    const last = async (user: string, of: string, name = '') => {
      const answer = await historyOf(console, user, of, name);
      if (typeof answer === 'number' || !answer.ok) return answer;
      return answer.charts.map(({ title, values, limit }) => [
        title,
        values.findLast((value) => value !== null),
        ...(limit === undefined ? [] : [limit]),
      ]);
    };
    const gpus = [
      ['Allocated', 30],
      ['Memory in use', 25],
      ['Utilization', 50],
    ];
    t.same(await last('operator', 'cluster'), gpus);
    t.same(await last('operator', 'node', 'gpu-node-1'), [gpus[0], ['GPU 0 utilization', 50], ...gpus.slice(1)]);
    t.same(await last('researcher', 'pod', 'research-bert'), [
      ['main, GPU 0: cores', 20, 30],
      ['main, GPU 0: memory', 20, 40],
    ]);
    t.match(await last('researcher', 'cluster'), [
      ['GPUs in use', 0.2],
      ['Memory in use', 20],
    ]);
    const hours = async (by: UsageBy) => {
      const question = { by, forMs: 86_400_000, namespaces: ['team-1', 'team-2'] };
      const answer = await hoursOfPrometheus(new Prometheus({ url, ...NO_FILES }), question, now * 1_000);
      if (!answer.ok) throw new Error(answer.reason);
      t.ok(Math.abs(answer.usage.fromMs / 1_000 - (moments[0] ?? 0)) <= 60, 'it says from when it knows');
      return answer.usage.rows.map(({ name, allocatedGpuHours: allocated, usedPart, pods }) => [
        ...[name, Math.round(allocated * 10) / 10, usedPart, pods],
      ]);
    };
    for (const [by, names] of [
      ['namespace', ['team-1', 'team-2']],
      ['pod', ['team-1/train', 'team-2/train']],
      ['node', ['gpu-node-1', 'gpu-node-2']],
      ['group', ['(no group)', 'science']],
    ] as const)
      t.same(
        await hours(by),
        names.map((name) => [name, 1.5, 0.2, 1]),
        by,
      );
    t.match(await new Prometheus({ url, ...NO_FILES }).retention(), /^15d$/);
  },
);
