import { Gauge, Registry } from 'prom-client';
import { test } from 'tap';
import { byLabel, counted, counter, histogram, Metrics, only, readAt, type Metric } from '../../src/http/metrics.js';

const CALLS = { name: 'calls_total', type: 'counter', help: 'Calls, by verb', labels: ['verb'] } as const;
const RETRIES = { name: 'retries_total', type: 'counter', help: 'Retries', labels: [] } as const;
const SECONDS = {
  name: 'call_seconds',
  type: 'histogram',
  help: 'Time of a call',
  labels: ['verb', 'result'],
  buckets: [0.1, 1],
} as const;
const TABLE: readonly Metric<{ readonly gpus: number; readonly used: ReadonlyMap<string, number> }>[] = [
  { name: 'gpus', type: 'gauge', help: 'GPUs', labels: [], read: ({ gpus }) => only(gpus) },
  { name: 'used', type: 'gauge', help: 'Used, by name', labels: ['name'], read: ({ used }) => byLabel('name', used) },
];

test('the text is what prom-client prints for the same values', async (t) => {
  const [calls, retries, seconds] = [counter(CALLS), counter(RETRIES), histogram(SECONDS)];
  const used = new Map([
    ['plain', 0.5],
    ['a "quoted" \\ text\nof two lines', 2],
  ]);
  const registry = new Registry();
  for (const metric of [calls, retries, seconds]) registry.registerMetric(metric);
  new Gauge({ name: 'gpus', help: 'GPUs', registers: [registry] }).set(8);
  const gauge = new Gauge({ name: 'used', help: 'Used, by name', labelNames: ['name'], registers: [registry] });
  for (const [name, value] of used) gauge.set({ name }, value);
  const metrics = new Metrics(
    counted([calls, retries, seconds]),
    readAt(TABLE, () => ({ gpus: 8, used })),
  );
  t.equal(await metrics.text(), await registry.metrics(), 'no value is counted yet');
  t.equal(metrics.contentType, registry.contentType);
  calls.inc({ verb: 'filter' });
  calls.inc({ verb: 'bind' }, 3);
  seconds.observe({ verb: 'filter', result: 'ok' }, 0.05);
  seconds.observe({ verb: 'filter', result: 'error' }, 7);
  t.equal(await metrics.text(), await registry.metrics());
  t.match(await metrics.text(), 'call_seconds_bucket{le="+Inf",verb="filter",result="ok"} 1\n');
});

test('samples with equal labels appear once: counters are added up, and the last gauge counts', async (t) => {
  const twice = [
    { labels: { name: 'a' }, value: 1 },
    { labels: { name: 'a' }, value: 2 },
  ];
  const table: readonly Metric<null>[] = [
    { name: 'g', type: 'gauge', help: 'h', labels: ['name'], read: () => twice },
    { name: 'c_total', type: 'counter', help: 'h', labels: ['name'], read: () => twice },
  ];
  const text = await new Metrics(readAt(table, () => null)).text();
  t.same(
    text.split('\n').filter((line) => /^[gc]/.test(line)),
    ['g{name="a"} 2', 'c_total{name="a"} 3'],
  );
});

test('values that are not finite are printed as Prometheus reads them', async (t) => {
  const values = new Map([
    ['nan', NaN],
    ['high', Infinity],
    ['low', -Infinity],
  ]);
  const table: readonly Metric<null>[] = [
    { name: 'g', type: 'gauge', help: 'h', labels: ['of'], read: () => byLabel('of', values) },
  ];
  t.match(
    await new Metrics(readAt(table, () => null)).text(),
    'g{of="nan"} NaN\ng{of="high"} +Inf\ng{of="low"} -Inf\n',
  );
});

test('families that a part adds later are printed at the end', async (t) => {
  const metrics = new Metrics(counted([counter(RETRIES)]));
  metrics.include([readAt(TABLE, () => ({ gpus: 1, used: new Map<string, number>() }))]);
  t.same(
    [...(await metrics.text()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name),
    ['retries_total', 'gpus', 'used'],
  );
});
