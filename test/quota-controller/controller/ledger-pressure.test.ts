import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse } from 'yaml';
import { readGroup } from '../../../src/kube/quota/group-object.js';
import { groupReport } from '../../../src/quota-controller/controller/group-report.js';
import { QuotaMetrics } from '../../../src/quota-controller/quota-metrics.js';
import type { Reconciler } from '../../../src/quota-controller/reconciler/reconciler.js';
import type { LedgerSize } from '../../../src/quota-controller/store/kube-store.js';
import { createEngine, MAX_RESERVATIONS, type QuotaEngine } from '../../../src/quota/internal.js';

const RULES = fileURLToPath(new URL('../../../../etc/prometheus/quota-rules.yaml', import.meta.url));
const MOST_ETCD_BYTES = 1_572_864;

const group = readGroup({
  metadata: { name: 'team', uid: 'u', resourceVersion: '1', generation: 1 },
  spec: { hard: { 'limits.cpu': 10_000 } },
});

/** An engine with a group of this many open reservations. */
async function reserved(count: number): Promise<QuotaEngine> {
  const engine = await createEngine({ clock: () => 0 });
  await engine.createGroup(group.spec);
  for (let at = 0; at < count; at++) await reserve(engine, at);
  return engine;
}

const reserve = (engine: QuotaEngine, at: number) =>
  engine.execute({
    type: 'reserve',
    operation: `review-${at}`,
    workload: { kind: 'Job', namespace: 'team', name: `job-${at}`, uid: `uid-${at}` },
    group: 'team',
    podSets: [{ count: 1, limits: { cpu: 1 } }],
    ttlMs: 60_000,
  });

/** The condition that the group's object shows; null for none. */
function pressure(engine: QuotaEngine, objectBytes: number) {
  const { conditions } = groupReport(group, engine.status('team'), null, 0, { ledgerBytes: objectBytes });
  return conditions?.find(({ type }) => type === 'LedgerPressure') ?? null;
}

function metricsText(engine: QuotaEngine, size: LedgerSize): Promise<string> {
  const metrics = new QuotaMetrics();
  metrics.watch(
    engine,
    { synced: true, groupsWithoutObject: () => new Map() } as unknown as Reconciler,
    { differenceMs: 0 },
    { sizeOf: () => size },
  );
  return metrics.page.text();
}

/** The value above which an alert fires. */
function thresholdOf(name: string): number {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
  };
  const rule = groups.flatMap(({ rules }) => rules).find(({ alert }) => alert === name);
  return Number(/ > (\d+)$/.exec(rule?.expr ?? '')?.[1]);
}

test('open reservations near their limit are a metric, a condition and an alert', async (t) => {
  const alertsAbove = thresholdOf('QuotaReservationsOpen');
  const engine = await reserved(alertsAbove);
  t.equal(pressure(engine, 4000), null, `${alertsAbove} reservations`);
  await reserve(engine, alertsAbove);
  t.match(pressure(engine, 4000), {
    status: 'True',
    reason: 'NearLimit',
    message: `${alertsAbove + 1} of ${MAX_RESERVATIONS} reservations are open: admitted objects are not observed`,
  });
  const text = await metricsText(engine, { objectBytes: 4000, totalBytes: 9000, segments: 2 });
  t.match(text, `quota_group_reservations{group="team"} ${alertsAbove + 1}\n`);
});

test('a reservation beyond the limit is refused with its reason, and others stay possible', async (t) => {
  const engine = await reserved(MAX_RESERVATIONS);
  t.match(await reserve(engine, MAX_RESERVATIONS), { allowed: false, code: 'TooManyReservations' });
  t.equal(engine.status('team')?.reservations, MAX_RESERVATIONS);
  t.match(pressure(engine, 4000), { message: `${MAX_RESERVATIONS} of ${MAX_RESERVATIONS} reservations are open` });
  const observed = { kind: 'Job', namespace: 'team', name: 'job-0', uid: 'uid-0', version: 5 };
  await engine.observe({
    workload: observed,
    group: 'team',
    demand: { workload: observed, group: 'team', podSets: [{ count: 1, limits: { cpu: 1 } }] },
  });
  t.match(await reserve(engine, MAX_RESERVATIONS), { allowed: true }, 'an observed workload frees its reservation');
});

test('a large ledger object is a metric, an alert and a condition before etcd refuses it', async (t) => {
  const engine = await reserved(0);
  const alertsAbove = thresholdOf('QuotaLedgerLarge');
  t.ok(alertsAbove < MOST_ETCD_BYTES);
  t.equal(pressure(engine, alertsAbove), null);
  t.match(pressure(engine, 1_200_000), {
    status: 'True',
    reason: 'NearLimit',
    message: 'the ledger object has 1200000 of 1500000 bytes',
  });
  const text = await metricsText(engine, { objectBytes: 1_200_000, totalBytes: 1_300_000, segments: 2 });
  t.match(text, 'quota_ledger_bytes{group="team",part="object"} 1200000\n');
  t.match(text, 'quota_ledger_bytes{group="team",part="all"} 1300000\n');
});
