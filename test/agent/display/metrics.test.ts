import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { METRICS } from '../../../src/agent/display/metrics.js';
import { CALL_DURATION, CLAIM_CALL_DURATION } from '../../../src/agent/node/call-times.js';
import { allocation, gpu, GIB, node, served, slice, viewOf } from './fixture.js';

const GPUS = [
  gpu(0, { usedPercent: 40, usedMemoryBytes: 3 * GIB }),
  gpu(1, {
    usedPercent: null,
    temperatureCelsius: null,
    health: { status: 'reset', reason: 'XID 48', sinceMs: 5 },
    usable: false,
  }),
];
const BASE = slice(GPUS[0]!);
const TRAIN = slice(GPUS[0]!, {
  share: 20,
  softLimit: 60,
  priority: 'low' as const,
  memoryLimitBytes: 2 * GIB,
  usedPercent: 25,
  usedMemoryBytes: 1.5 * GIB,
  driverMemoryBytes: 0.25 * GIB,
  hostBackedLimitBytes: 2 * GIB,
  hostBackedBytes: 0.5 * GIB,
  peakMemoryBytes: GIB,
  pids: [7, 8],
  controlError: -0.013,
  correction: 1.05,
  timeDrift: 0.04,
  memoryDriftBytes: -4096,
  counters: {
    ...BASE.counters!,
    launches: 100,
    waits: 9,
    throttledSeconds: 1.5,
    chargedSeconds: 12.25,
    deniedBytes: 4096,
    denied: { ...BASE.counters!.denied, managed: 3 },
  },
});
const STATE = node({
  gpus: GPUS,
  allocations: [
    allocation('train', [TRAIN], {
      refusedConnections: 12,
      socketFloods: 1,
      findings: [{ code: 'over-limit', message: 'm', serious: false }],
    }),
    allocation('whole', [
      slice(GPUS[1]!, { allocatedCores: 100, share: 100, allocatedMemoryBytes: null, memoryLimitBytes: null }),
    ]),
    allocation('unstarted', [slice(GPUS[0]!)], { owners: [], phase: 'allocated' }),
  ],
});
const VIEW = viewOf(() => STATE, {
  counts: () => ({
    refusals: new Map([['nothing-fits', 2]]),
    errors: new Map([['api-write', 1]]),
    findings: new Map([['tampered', 4]]),
    evictions: 5,
    nri: { connected: true, corrected: 6 },
    dra: {
      registered: true,
      overlaps: 7,
      publishErrors: 8,
      features: new Map([
        ['shares', true],
        ['taints', false],
      ]),
    },
  }),
});

async function scraped(t: Parameters<typeof served>[0]): Promise<string> {
  const { get, times } = await served(t, VIEW);
  times.observe('allocate', 'core', 'ok', 0.003);
  const answer = await get('/metrics');
  return answer.text;
}

test('the metrics have the original names, labels and values, on both paths', async (t) => {
  const { get } = await served(t, VIEW);
  const { text: all, type } = await get('/metric');
  t.match(type, /^text\/plain/);
  const labels = 'pod_name="train",namespace="default",node="node1",container_name="main"';
  for (const line of [
    `container_request_gpu_utilization{${labels},req_of_gpu="total"} 0.30000001192092896`,
    `container_request_gpu_memory{${labels},req_of_gpu_memory="total"} 4096`,
    `container_gpu_utilization{${labels},gpu="gpu0"} 25`,
    `container_gpu_utilization{${labels},gpu="total"} 25`,
    `container_gpu_memory_total{${labels},gpu_memory="gpu0"} 1536`,
    `container_gpu_memory_total{${labels},gpu_memory="total"} 1536`,
  ]) {
    t.ok(all.split('\n').includes(line), line);
  }
  t.match((await get('/metrics')).text, /container_gpu_memory_total\{/);
});

test('metrics in base units stand beside the original ones, and unknown values are absent', async (t) => {
  const lines = (await scraped(t)).split('\n');
  const train = 'namespace="default",pod="train",container="main",gpu="0"';
  const gpu = (at: number): string => `gpu="${at}",uuid="${GPUS[at]?.uuid}"`;
  for (const line of [
    `vgpu_container_requested_ratio{${train}} 0.3`,
    `vgpu_container_limit_ratio{${train}} 0.2`,
    `vgpu_container_soft_limit_ratio{${train}} 0.6`,
    `vgpu_container_priority{${train}} -1`,
    `vgpu_container_used_ratio{${train}} 0.25`,
    `vgpu_container_memory_limit_bytes{${train}} ${2 * GIB}`,
    `vgpu_container_memory_used_bytes{${train}} ${1.5 * GIB}`,
    `vgpu_container_host_backed_memory_limit_bytes{${train}} ${2 * GIB}`,
    `vgpu_container_host_backed_memory_bytes{${train}} ${0.5 * GIB}`,
    `vgpu_container_throttled_seconds_total{${train}} 1.5`,
    `vgpu_container_gpu_seconds_total{${train}} 12.25`,
    `vgpu_container_memory_denials_total{${train},api="managed"} 3`,
    `vgpu_container_control_error_ratio{${train}} -0.013`,
    'vgpu_container_findings{namespace="default",pod="train",container="main",code="over-limit"} 1',
    `vgpu_container_time_drift_ratio{${train}} 0.04`,
    `vgpu_container_memory_drift_bytes{${train}} -4096`,
    'vgpu_container_refused_connections_total{namespace="default",pod="train",container="main"} 12',
    'vgpu_container_socket_floods_total{namespace="default",pod="train",container="main"} 1',
    `vgpu_gpu_utilization_ratio{${gpu(0)}} 0.4`,
    `vgpu_gpu_health{${gpu(1)},status="reset"} 1`,
    `vgpu_gpu_health{${gpu(1)},status="healthy"} 0`,
    `vgpu_gpu_usable{${gpu(1)}} 0`,
    'vgpu_allocations{phase="started"} 2',
    'vgpu_refusals_total{code="nothing-fits"} 2',
    'vgpu_errors_total{cause="api-write"} 1',
    'vgpu_findings_total{code="tampered"} 4',
    'vgpu_evictions_total 5',
    'vgpu_nri_connected 1',
    'vgpu_nri_corrected_containers_total 6',
    'gpu_dra_registered 1',
    'gpu_dra_feature{feature="shares"} 1',
    'gpu_dra_feature{feature="taints"} 0',
    'gpu_dra_overlap_total 7',
    'gpu_dra_publish_errors_total 8',
    'vgpu_kubelet_call_duration_seconds_count{call="allocate",resource="core",result="ok"} 1',
  ]) {
    t.ok(lines.includes(line), line);
  }
  t.notOk(
    lines.some((line) => line.startsWith(`vgpu_gpu_utilization_ratio{${gpu(1)}`)),
    'a GPU that does not report the value',
  );
  t.notOk(
    lines.some((line) => line.startsWith('vgpu_container_memory_limit_bytes') && line.includes('"whole"')),
    'a container without a limit',
  );
  t.notOk(
    lines.some((line) => line.startsWith('vgpu_container_host_backed') && line.includes('"whole"')),
    'a container that holds no host memory',
  );
  t.notOk(
    lines.some((line) => line.startsWith('vgpu_container_time_drift_ratio') && line.includes('"whole"')),
    'a driver that does not report single processes',
  );
  t.equal(
    lines.filter((line) => line.startsWith('vgpu_container_memory_denials_total{')).length,
    1,
    'events that never happened have no series',
  );
});

test('a name that occurs twice, as when a pod replaces another, is one sample, and texts are escaped', async (t) => {
  const twice = (podUid: string, seconds: number) =>
    allocation(
      `twice-${podUid}`,
      [slice(GPUS[0]!, { usedPercent: seconds, counters: { ...BASE.counters!, throttledSeconds: seconds } })],
      { owners: [{ podUid, namespace: 'n', pod: 'p\\"\n', container: 'c' }] },
    );
  const { get } = await served(
    t,
    viewOf(() => node({ gpus: GPUS, allocations: [twice('1', 10), twice('2', 20)] })),
  );
  const lines = (await get('/metrics')).text.split('\n');
  const labels = 'namespace="n",pod="p\\\\\\"\\n",container="c",gpu="0"';
  t.same(
    lines.filter((line) => line.startsWith('vgpu_container_used_ratio{')),
    [`vgpu_container_used_ratio{${labels}} 0.2`],
  );
  t.same(
    lines.filter((line) => line.startsWith('vgpu_container_throttled_seconds_total{')),
    [`vgpu_container_throttled_seconds_total{${labels}} 30`],
  );
});

test(
  'promtool finds no fault in the metrics',
  { skip: spawnSync('promtool', ['--version']).status === 0 ? false : 'promtool is not installed' },
  async (t) => {
    const metrics = await scraped(t);
    const promtool = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] });
    promtool.stdin.end(metrics);
    const [out, err, code] = await Promise.all([
      text(promtool.stdout),
      text(promtool.stderr),
      new Promise((resolve) => promtool.on('close', resolve)),
    ]);
    t.equal(`${out}${err}`, '');
    t.equal(code, 0);
  },
);

test('the table of metrics in the documents agrees with the code', (t) => {
  const document = readFileSync(
    fileURLToPath(new URL('../../../../docs/reference/operators-view.md', import.meta.url)),
    'utf8',
  );
  const rows = [
    ...document.matchAll(/^\| `([a-z_]+)` \| (gauge|counter|histogram|untyped) \| ([^|]*) \| ([^|]*) \|$/gmu),
  ].map(([, name, type, labels, help]) => ({
    name,
    type,
    labels: labels?.trim() ?? '',
    help: help?.trim() ?? '',
  }));
  t.same(
    rows,
    [CALL_DURATION, CLAIM_CALL_DURATION, ...METRICS].map(({ name, type, labels, help }) => ({
      name,
      type,
      labels: labels.join(', '),
      help,
    })),
  );
  t.end();
});
