import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { stringify } from 'yaml';
import { createEngine } from '../../src/quota/internal.js';
import { QuotaMetrics } from '../../src/quota-controller/quota-metrics.js';
import type { Reconciler } from '../../src/quota-controller/reconciler/reconciler.js';
import { alertsOf, expressionsOf, rendered } from '../harness/alerts.js';
import { scratchDirectory } from '../scratch.js';

const RULES = fileURLToPath(new URL('../../../etc/prometheus/quota-rules.yaml', import.meta.url));
const DASHBOARD = fileURLToPath(new URL('../../../etc/grafana/quota.json', import.meta.url));

const rules = alertsOf(RULES);

/** All metrics of a service with two groups, one of which has a grant that its parent cannot pay. */
async function metricsText(): Promise<string> {
  const now = Date.parse('2026-03-02T00:00:00Z');
  const engine = await createEngine({ clock: () => now });
  const hard = { 'limits.cpu': 4, 'cash/limits.cpu': 10 };
  await engine.createGroup({ name: 'company', hard });
  await engine.createGroup({
    name: 'team',
    parent: 'company',
    hard,
    grants: [{ name: 'extra', key: 'cash/limits.cpu', amount: 5 }],
  });
  await engine.execute({
    type: 'podStarted',
    pod: 'p',
    workload: { kind: 'Job', name: 'w' },
    group: 'team',
    limits: { cpu: 2 },
  });
  const metrics = new QuotaMetrics();
  metrics.watch(
    engine,
    { synced: true, groupsWithoutObject: () => new Map() } as unknown as Reconciler,
    { differenceMs: 0 },
    {
      sizeOf: () => ({ objectBytes: 4000, totalBytes: 9000, segments: 1 }),
    },
  );
  metrics.decided('/workloads', { allowed: false, code: 403 }, 0.001);
  metrics.refreshed(0, now);
  return metrics.page.text();
}

test('alerts and dashboard use existing metrics, labels and amounts', async (t) => {
  const text = await metricsText();
  t.match(text, /quota_group\{group="team",key="cash\/limits.cpu",what="granted"\} 10\n/);
  t.match(text, /quota_group\{group="team",key="cash\/limits.cpu",what="left"\} 10\n/);
  t.match(text, /quota_group\{group="team",key="cash\/limits.cpu",what="rate"\} 2\n/);
  t.match(text, /quota_group_grant_refused\{group="team",grant="extra"\} 1\n/);
  const asked = [...rules.map(({ expr }) => expr), ...expressionsOf(DASHBOARD)];
  t.ok(asked.length > 25);
  for (const expression of asked) {
    for (const [, name = '', selector = ''] of expression.matchAll(/\b(quota_\w+)(?:\{([^}]*)\})?/gu)) {
      t.match(text, new RegExp(`^${name}[{ ]`, 'm'), `${name} in ${expression}`);
      for (const [, label = '', value = ''] of selector.matchAll(/(\w+)\s*[=!]~?\s*"([^"]*)"/gu)) {
        t.match(text, new RegExp(`^${name}\\{[^}]*\\b${label}="`, 'm'), `${name} has the label ${label}`);
        if (label === 'what') t.match(text, new RegExp(`what="${value}"`), `there is an amount ${value}`);
      }
    }
  }
  for (const { alert, annotations } of rules) t.match(annotations, { summary: /\w/, description: /\w/ }, alert);
});

test(
  'promtool takes the rules, and they fire when they should and not otherwise',
  { skip: spawnSync('promtool', ['--version']).status === 0 ? false : 'promtool is not installed' },
  async (t) => {
    const check = spawnSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' });
    t.equal(check.status, 0, check.stdout + check.stderr);
    const budget = (what: string, replica: string): string =>
      `quota_group{group="team", key="cash/limits.cpu", what="${what}", instance="${replica}"}`;
    const limit = (what: string): string => `quota_group{group="team", key="limits.cpu", what="${what}"}`;
    const quiet = (alertname: string, eval_time: string) => ({ alertname, eval_time, exp_alerts: [] });
    const fires = (
      alertname: string,
      severity: string,
      eval_time: string,
      labels: Readonly<Record<string, string>>,
      value: string,
    ) => {
      const annotations = rules.find(({ alert }) => alert === alertname)?.annotations ?? {};
      const exp_annotations = rendered(annotations, labels, value);
      return { alertname, eval_time, exp_alerts: [{ exp_labels: { severity, ...labels }, exp_annotations }] };
    };
    const of = { group: 'team', key: 'cash/limits.cpu' };
    const file = join(await scratchDirectory(t), 'cases.yaml');
    const cases = {
      rule_files: [RULES],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            // Two replicas with equal metrics give one alert.
            ...['a', 'b'].flatMap((replica) => [
              { series: budget('granted', replica), values: '100x200' },
              { series: budget('left', replica), values: '50x20 8x30 0x150' },
              { series: budget('rate', replica), values: '1x20 5x180' },
            ]),
            { series: limit('used'), values: '4x20 6x180' },
            { series: limit('hard'), values: '5x200' },
            { series: 'quota_group_grant_refused{group="team", grant="weekly"}', values: '0x20 1x180' },
            { series: 'quota_clock_difference_seconds{instance="a"}', values: '0.3x20 -400x180' },
            { series: 'quota_drift', values: '0x200' },
            { series: 'quota_group_reservations{group="team"}', values: '3x20 900x180' },
            { series: 'quota_ledger_bytes{group="team", part="object"}', values: '4000x20 1200000x180' },
            { series: 'quota_refreshed_timestamp_seconds{instance="a"}', values: '0x200' },
            { series: 'quota_refreshed_timestamp_seconds{instance="b"}', values: '0+60x100 6000x100' },
          ],
          alert_rule_test: [
            quiet('QuotaBudgetLow', '10m'),
            fires('QuotaBudgetLow', 'warning', '30m', of, '8'),
            quiet('QuotaBudgetLow', '60m'),
            quiet('QuotaBudgetSpent', '30m'),
            fires('QuotaBudgetSpent', 'warning', '60m', of, '0'),
            quiet('QuotaBudgetSpentWithinADay', '15m'),
            fires('QuotaBudgetSpentWithinADay', 'info', '40m', of, '8'),
            quiet('QuotaGroupOverQuota', '40m'),
            fires('QuotaGroupOverQuota', 'warning', '60m', { group: 'team', key: 'limits.cpu' }, '6'),
            quiet('QuotaGrantRefused', '15m'),
            fires('QuotaGrantRefused', 'warning', '30m', { group: 'team', grant: 'weekly' }, '1'),
            quiet('QuotaDrift', '60m'),
            quiet('QuotaReservationsOpen', '20m'),
            fires('QuotaReservationsOpen', 'warning', '30m', { group: 'team' }, '900'),
            quiet('QuotaLedgerLarge', '20m'),
            fires('QuotaLedgerLarge', 'warning', '30m', { group: 'team' }, '1.2e+06'),
            quiet('QuotaClockApart', '20m'),
            fires('QuotaClockApart', 'critical', '40m', { instance: 'a' }, '-400'),
            quiet('QuotaNotRefreshed', '100m'),
            fires('QuotaNotRefreshed', 'critical', '150m', {}, '1'),
          ],
        },
      ],
    };
    await writeFile(file, stringify(cases));
    const result = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    t.equal(result.status, 0, result.stdout + result.stderr);
  },
);
