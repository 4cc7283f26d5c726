import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type Test } from 'tap';
import { parse, stringify } from 'yaml';
import { Prometheus } from '../../src/console/prometheus.js';
import { expressionsOf } from '../harness/alerts.js';
import { eventually } from '../harness/eventually.js';
import { freePort } from '../harness/free-port.js';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const missing = (program: string): string | false =>
  spawnSync(program, ['--version']).status === 0 ? false : `${program} is not installed`;

test(
  'the dashboard of teams sums up GPU-hours by namespace and quota group',
  { skip: missing('promtool') },
  async (t) => {
    const expressions = expressionsOf(join(ROOT, 'etc/grafana/usage.json'))
      .filter((expression) => /[({]/u.test(expression) && !expression.startsWith('label_values'))
      .map((expression) => expression.replaceAll('$__range', '2h').replaceAll('$namespace', '.*'));
    t.equal(expressions.length, 13);
    const of = (name: string): string => `instance="n", namespace="${name}", pod="p", container="c"`;
    const input_series = [
      { series: `vgpu_container_requested_ratio{${of('a')}, gpu="0"}`, values: '1x120' },
      { series: `vgpu_container_used_ratio{${of('a')}, gpu="0"}`, values: '0.25x120' },
      // For the first hour only.
      { series: `vgpu_container_requested_ratio{${of('b')}, gpu="1"}`, values: '0.5x59 stale _x59' },
      { series: `vgpu_container_used_ratio{${of('b')}, gpu="1"}`, values: '0.5x59 stale _x59' },
      { series: `vgpu_allocation_info{${of('a')}, allocation="1", quota_group="g"}`, values: '1x120' },
      { series: `vgpu_allocation_info{${of('b')}, allocation="2"}`, values: '1x120' },
    ];
    // Every query fails, and says what it got.
    const promql_expr_test = expressions.map((expr) => ({
      expr,
      eval_time: '119m',
      exp_samples: [{ labels: 'no', value: 0 }],
    }));
    const file = join(await scratchDirectory(t), 'cases.yaml');
    await writeFile(file, stringify({ tests: [{ interval: '1m', input_series, promql_expr_test }] }));
    const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    const answers = [...`${stdout}${stderr}`.matchAll(/expr: .*\n\s+exp: .*\n\s+got: ?(.*)$/gmu)].map(([, got = '']) =>
      [...got.matchAll(/\{(.*?)\} ([\d.E+-]+)/gu)].map(
        ([, labels, value]) => `${labels} ${Math.round(Number(value) * 100) / 100}`,
      ),
    );
    t.same(
      answers,
      [
        ...[[' 2.5'], [' 1'], [' 0.4'], [' 2']],
        ...[
          ['namespace="a" 2', 'namespace="b" 0.5'],
          ['namespace="a" 0.5', 'namespace="b" 0.5'],
          ['namespace="a" 1', 'namespace="b" 1'],
        ],
        ...[
          [' 0.5', 'quota_group="g" 2'],
          [' 0.5', 'quota_group="g" 0.5'],
          [' 1', 'quota_group="g" 1'],
        ],
        ...[['namespace="a" 1'], ['namespace="a" 0.25']],
        ['namespace="a", pod="p" 1.5', 'namespace="b", pod="p" 0'],
      ],
      stdout + stderr,
    );
  },
);

/** A server that Prometheus scrapes; returns its target. */
async function exporter(t: Test, lines: readonly string[]): Promise<string> {
  const server = createServer((_request, response) => void response.end(`${lines.join('\n')}\n`));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the guide lets OpenCost see shares of GPUs, and their price', { skip: missing('prometheus') }, async (t) => {
  const guide = readFileSync(join(ROOT, 'docs/guides/cost.md'), 'utf8');
  const [, block = ''] = /```yaml\n(.*?)```/su.exec(guide) ?? [];
  const { scrape_configs: [openCost] = [] } = parse(block) as { readonly scrape_configs?: readonly object[] };
  const main = (namespace: string): string => `namespace="${namespace}",pod="p",container="main"`;
  const nodeLabels = 'instance="gpu-node-1",node="gpu-node-1",instance_type="big",provider_id="id-1"';
  const agent = await exporter(t, [
    'vgpu_gpus 4',
    'vgpu_build_info{version="1",driver_version="",node="gpu-node-1"} 1',
    `vgpu_container_requested_ratio{${main('research')},gpu="0"} 0.3`,
    `vgpu_container_requested_ratio{${main('research')},gpu="1"} 0.3`,
  ]);
  const exported = await exporter(t, [
    // It reports 0 for requests that it does not know.
    `container_gpu_allocation{${main('research')},instance="gpu-node-1",node="gpu-node-1"} 0`,
    `container_gpu_allocation{${main('vision')},instance="gpu-node-1",node="gpu-node-1"} 2`,
    `node_cpu_hourly_cost{${nodeLabels}} 0.03`,
    `node_gpu_hourly_cost{${nodeLabels}} 0`,
    `node_gpu_count{${nodeLabels}} 0`,
  ]);
  const directory = await scratchDirectory(t);
  const rules = parse(readFileSync(join(ROOT, 'etc/prometheus/opencost-rules.yaml'), 'utf8')) as {
    readonly groups: readonly object[];
  };
  await writeFile(
    join(directory, 'rules.yml'),
    stringify({ groups: rules.groups.map((group) => ({ ...group, interval: '1s' })) }),
  );
  const targets = (target: string) => ({ static_configs: [{ targets: [target] }] });
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(directory, 'rules.yml')],
    scrape_configs: [
      { ...openCost, ...targets(exported) },
      { job_name: 'gpu-manager', honor_labels: true, ...targets(agent) },
    ],
  };
  await writeFile(join(directory, 'prometheus.yml'), stringify(config));
  const port = await freePort();
  const flags = [
    `--config.file=${directory}/prometheus.yml`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const server = spawn('prometheus', flags, { stdio: 'ignore' });
  t.teardown(async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGKILL');
    await ended;
  });
  const prometheus = new Prometheus({ url: new URL(`http://127.0.0.1:${port}/`), caFile: null, tokenFile: null });
  const ask = async (query: string): Promise<readonly string[] | null> => {
    const answer = await prometheus.instant(query, Date.now());
    return answer.ok && answer.samples.length > 0
      ? answer.samples.map(({ labels, value }) => `${labels.namespace ?? labels.node ?? ''} ${value}`).sort()
      : null;
  };
  // As OpenCost asks it for the allocation of containers and the price of nodes.
  const containers = (kind: string) =>
    `avg(avg_over_time(${kind}{container!="", container!="POD", node!=""}[1m])) by (container, pod, namespace, node)`;
  const nodes = (kind: string) => `avg(avg_over_time(${kind}[1m])) by (node, instance_type, provider_id)`;
  const limitMs = 60_000;
  const both = async () => {
    const answer = await ask(containers('container_gpu_allocation'));
    return answer?.length === 2 ? answer : null;
  };
  t.same(await eventually(both, 'both containers have GPUs', limitMs), ['research 0.6', 'vision 2']);
  t.same(await eventually(() => ask(nodes('node_gpu_hourly_cost')), 'the price', limitMs), ['gpu-node-1 2.5']);
  t.same(await eventually(() => ask(nodes('node_gpu_count')), 'the number of GPUs', limitMs), ['gpu-node-1 4']);
});
