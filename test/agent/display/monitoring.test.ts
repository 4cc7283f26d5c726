import { spawn, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { stringify } from 'yaml';
import { METRICS } from '../../../src/agent/display/metrics.js';
import { CALL_DURATION } from '../../../src/agent/node/call-times.js';
import { runPod, startedNode } from '../node.js';
import { simplePod } from '../pods.js';
import { alertsOf, expressionsOf, rendered } from '../../harness/alerts.js';
import { eventually } from '../../harness/eventually.js';
import { freePort } from '../../harness/free-port.js';
import { scratchDirectory } from '../../scratch.js';

const RULES = fileURLToPath(new URL('../../../../etc/prometheus/rules.yaml', import.meta.url));
const DASHBOARDS = ['gpu-manager', 'usage'].map((name) =>
  fileURLToPath(new URL(`../../../../etc/grafana/${name}.json`, import.meta.url)),
);

const installed = (program: string): string | false =>
  spawnSync(program, ['--version']).status === 0 ? false : `${program} is not installed`;

const rules = alertsOf(RULES);

test('alerts and dashboards use metrics and labels that the agent exports', (t) => {
  const labels = new Map<string, readonly string[]>(METRICS.map((metric) => [metric.name, metric.labels]));
  labels.set(`${CALL_DURATION.name}_bucket`, [...CALL_DURATION.labels, 'le']);
  const asked = [...rules.map(({ expr }) => expr), ...DASHBOARDS.flatMap(expressionsOf)];
  t.ok(asked.length > 30);
  for (const expression of asked) {
    for (const [, name = '', selector = ''] of expression.matchAll(
      /\b((?:vgpu|process|container)_\w+)(?:\{([^}]*)\})?/gu,
    )) {
      t.ok(labels.has(name), `${name} in ${expression}`);
      for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=|!)/gu))
        t.ok(label === 'instance' || labels.get(name)?.includes(label), `${name} has no label ${label}`);
    }
  }
  for (const { alert, annotations } of rules) t.match(annotations, { summary: /\w/, description: /\w/ }, alert);
  t.end();
});

test(
  'promtool accepts the rules, and alerts fire under their conditions only',
  { skip: installed('promtool') },
  async (t) => {
    const check = spawnSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' });
    t.equal(check.status, 0, check.stdout + check.stderr);
    const gpu = 'instance="n", gpu="0", uuid="GPU-1"';
    const container = 'instance="n", namespace="ns", pod="p", container="c", gpu="0"';
    const firing = (alertname: string, eval_time: string, ...exp_labels: object[]) => ({
      eval_time,
      alertname,
      exp_alerts: exp_labels.map((labels) => ({ exp_labels: labels })),
    });
    const cases = {
      rule_files: [RULES],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: `vgpu_gpu_health{${gpu}, status="lost"}`, values: '0x5 1x60' },
            { series: `vgpu_gpu_health{${gpu}, status="healthy"}`, values: '1x5 0x60' },
            { series: `vgpu_container_throttled_seconds_total{${container}}`, values: '0+6x70' },
            { series: `vgpu_container_control_error_ratio{${container}}`, values: '0.01x70' },
            { series: `vgpu_container_memory_denials_total{${container}, api="alloc"}`, values: '0x20 1x50' },
            { series: 'vgpu_ready{instance="n"}', values: '1x70' },
          ],
          alert_rule_test: [
            firing('GpuUnhealthy', '5m'),
            firing('GpuUnhealthy', '8m', {
              severity: 'critical',
              instance: 'n',
              gpu: '0',
              uuid: 'GPU-1',
              status: 'lost',
            }),
            // A rate of 0.1 seconds per second is below the threshold.
            firing('GpuContainerThrottled', '60m'),
            firing('GpuShareNotKept', '60m'),
            firing('GpuMemoryDenied', '15m'),
            firing('GpuMemoryDenied', '25m', {
              severity: 'info',
              instance: 'n',
              namespace: 'ns',
              pod: 'p',
              container: 'c',
              gpu: '0',
            }),
            firing('GpuManagerNotReady', '60m'),
          ],
        },
      ],
    };
    const file = join(await scratchDirectory(t), 'cases.yaml');
    // Alerts are compared by name and labels; annotations are texts for people.
    const texts = Object.fromEntries(rules.map(({ alert, annotations }) => [alert, annotations]));
    for (const group of cases.tests)
      for (const one of group.alert_rule_test)
        for (const expected of one.exp_alerts as { exp_labels: Record<string, string>; exp_annotations?: object }[])
          expected.exp_annotations = rendered(texts[one.alertname] ?? {}, expected.exp_labels, '1');
    await writeFile(file, stringify(cases));
    const result = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    t.equal(result.status, 0, result.stdout + result.stderr);
  },
);

test('Prometheus scrapes the agent and loads the rules', { skip: installed('prometheus') }, async (t) => {
  const node = await startedNode(t, { knowsPods: true });
  const wanted = simplePod(30, 8);
  await runPod(node, wanted);
  const directory = await scratchDirectory(t);
  const port = await freePort();
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      {
        job_name: 'gpu-manager',
        honor_labels: true,
        static_configs: [{ targets: [`127.0.0.1:${node.agent.httpPort()}`] }],
      },
    ],
  };
  await writeFile(join(directory, 'prometheus.yml'), stringify(config));
  const prometheus = spawn(
    'prometheus',
    [
      `--config.file=${directory}/prometheus.yml`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  t.teardown(async () => {
    const ended = new Promise((resolve) => prometheus.once('exit', resolve));
    prometheus.kill('SIGKILL');
    await ended;
  });
  const ask = async <T>(path: string): Promise<T | null> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`).catch(() => null);
    return answer?.ok === true ? ((await answer.json()) as { data: T }).data : null;
  };
  const query = async (expression: string) =>
    (
      await ask<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(expression)}`,
      )
    )?.result ?? [];
  const limitMs = 60_000;
  const [requested] = await eventually(
    async () => {
      const found = await query(`vgpu_container_requested_ratio{pod="${wanted.name}"}`);
      return found.length > 0 && found;
    },
    'the scrape',
    limitMs,
  );
  t.match(
    requested,
    { metric: { namespace: 'default', pod: wanted.name, container: 'main', gpu: '0' }, value: [Number, '0.3'] },
    'the labels name the container',
  );
  t.equal((await query('vgpu_gpus'))[0]?.value[1], '6');
  t.equal((await query('container_request_gpu_utilization'))[0]?.value[1], '0.30000001192092896');
  t.ok(Number((await query('sum(vgpu_kubelet_call_duration_seconds_count)'))[0]?.value[1]) >= 4);
  const groups = await eventually(
    async () => {
      const found = await ask<{ groups: { rules: { health: string; state: string; name: string }[] }[] }>('rules');
      return (
        found !== null &&
        found.groups.every((group) => group.rules.every(({ health }) => health !== 'unknown')) &&
        found.groups
      );
    },
    'the rules',
    limitMs,
  );
  const known = groups.flatMap((group) => group.rules);
  t.equal(known.length, rules.length);
  t.same(
    known.filter(({ health, state }) => health !== 'ok' || state !== 'inactive'),
    [],
    'a healthy node fires no alert',
  );
});
