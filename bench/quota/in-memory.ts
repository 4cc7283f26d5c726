import { Quota, type Decision, type Mode } from '../../src/quota/index.js';
import { measured, median, type BenchOptions } from '../report.js';
import { reachableBytes } from './heap.js';
import { Latencies } from './latency.js';
import { NaiveQuota } from './naive.js';
import { demandOf, worldOf, DEPTH, KEYS, type World } from './world.js';

/** Demands are made in batches beforehand: decoding a request is not part of a decision. */
const PORTION = 250;
const DENIED = 200_000;
const EXPLAINED = 100_000;
const NAIVE = 20;
const SLICE = 1000;
const WHAT_IF = 1000;
const AGAIN = 11;

/** The modes as the documentation calls them. */
const LABELS: Readonly<Record<Mode, string>> = { carved: 'child quota', elastic: 'elastic' };

/** Requests the workloads from `from` to `to` and checks each answer. */
function admitAll(quota: Quota, world: World, from: number, to: number, look: (decision: Decision) => void): Latencies {
  const latencies = new Latencies(to - from);
  for (let portion = from; portion < to; portion += PORTION) {
    const demands = Array.from({ length: Math.min(PORTION, to - portion) }, (_, at) => demandOf(world, portion + at));
    for (const demand of demands) {
      const started = performance.now();
      const decision = quota.admit(demand);
      latencies.add(performance.now() - started);
      look(decision);
    }
  }
  return latencies;
}

function mustBeAllowed(decision: Decision): void {
  if (!decision.allowed) throw new Error(`refused: ${decision.message}`);
}

/** Fills a tree of `groupCount` groups with `count` workloads and measures every kind of request. */
export function measureInMemory({ report, note }: BenchOptions, mode: Mode, groupCount: number, count: number): void {
  const world = worldOf(groupCount, count, mode);
  const naive = measureNaive(world, count);
  const empty = reachableBytes();
  const quota = new Quota({ clock: () => 0 });
  const making = new Latencies(groupCount);
  for (const group of world.groups) {
    const started = performance.now();
    mustBeAllowed(quota.createGroup(group));
    making.add(performance.now() - started);
  }
  report(measured(`${LABELS[mode]}: group created, p99`, making.quantile(0.99), 'us'));
  const withGroups = reachableBytes();
  report(measured(`${LABELS[mode]}: memory of a group`, (withGroups - empty) / groupCount, 'B'));
  const before = { ...quota.counters };
  const admitted = admitAll(quota, world, 0, count, mustBeAllowed);
  report(measured(`${LABELS[mode]}: admitted`, admitted.rate, '1/s', naive));
  report(measured(`${LABELS[mode]}: admitted, p99`, admitted.quantile(0.99), 'us'));
  report(measured(`${LABELS[mode]}: admitted, p99.9`, admitted.quantile(0.999), 'us'));
  const looks = (quota.counters.keysTested - before.keysTested) / count;
  const levels = mode === 'elastic' ? DEPTH : 1;
  report(measured(`${LABELS[mode]}: keys looked at for an admission`, looks, '', levels * KEYS.length));
  report(measured(`${LABELS[mode]}: memory of a workload`, (reachableBytes() - withGroups) / count, 'B'));
  measureRefresh(report, quota, mode);
  measureWhatIf({ report, note }, quota, world, mode, count);
  measureExplained(report, quota, world, mode, count);
  measureDenied(report, quota, world, mode, count);
  note(`${LABELS[mode]}: ${quota.groups().length} groups, ${count} workloads`);
}

/** The admissions a second of adding everything up, with `count` workloads. */
function measureNaive(world: World, count: number): number {
  const naive = new NaiveQuota(world.groups);
  for (let index = 0; index < count; index++) naive.fill(demandOf(world, index));
  const latencies = new Latencies(NAIVE);
  for (let index = count; index < count + NAIVE; index++) {
    const demand = demandOf(world, index);
    const started = performance.now();
    if (!naive.admit(demand)) throw new Error('refused by the baseline');
    latencies.add(performance.now() - started);
  }
  return latencies.rate;
}

function measureRefresh(report: BenchOptions['report'], quota: Quota, mode: Mode): void {
  const started = performance.now();
  const { drift } = quota.refresh();
  report(measured(`${LABELS[mode]}: full refresh`, performance.now() - started, 'ms'));
  if (drift.length > 0) throw new Error(`${drift.length} counters are wrong`);
  const pauses = new Latencies(1_000_000);
  const slices = quota.refreshSlices(SLICE);
  for (let done = false; !done;) {
    const from = performance.now();
    done = slices.next().done === true;
    pauses.add(performance.now() - from);
  }
  report(measured(`${LABELS[mode]}: longest pause of a refresh in slices`, pauses.quantile(1) / 1000, 'ms'));
}

function measureWhatIf(
  { report, note }: Pick<BenchOptions, 'report' | 'note'>,
  quota: Quota,
  world: World,
  mode: Mode,
  count: number,
): void {
  const script = Array.from({ length: WHAT_IF }, (_, at) => ({
    command: { type: 'admit' as const, ...demandOf(world, count + at) },
  }));
  const { revision } = quota;
  const started = performance.now();
  const simulation = quota.simulate(script);
  report(measured(`${LABELS[mode]}: what-if of ${WHAT_IF} workloads`, performance.now() - started, 'ms'));
  note(`${LABELS[mode]}: the what-if changes ${simulation.changed.length} groups`);
  report(measured(`${LABELS[mode]}: what-if, with the status of its groups`, performance.now() - started, 'ms'));
  const again = Array.from({ length: AGAIN }, () => {
    const from = performance.now();
    quota.simulate(script);
    return performance.now() - from;
  });
  report(measured(`${LABELS[mode]}: what-if again, median of ${AGAIN}`, median(again), 'ms'));
  simulation.decisions.forEach(mustBeAllowed);
  if (quota.revision !== revision) throw new Error('a simulation left a trace');
}

/** With a listener, and every field of the answer read. */
function measureExplained(report: BenchOptions['report'], quota: Quota, world: World, mode: Mode, count: number): void {
  let read = 0;
  const end = quota.on(({ amounts }) => (read += amounts?.size ?? 0));
  const latencies = new Latencies(EXPLAINED);
  for (let index = 0; index < EXPLAINED; index++) {
    // Existing workloads with another size: their charge changes.
    const { podSets, ...demand } = demandOf(world, index % count);
    const grown = { ...demand, podSets: podSets.map((podSet) => ({ ...podSet, count: index % 2 })) };
    const started = performance.now();
    const decision = quota.admit(grown);
    read += decision.message.length + decision.charged.size + decision.path.length;
    latencies.add(performance.now() - started);
    mustBeAllowed(decision);
  }
  end();
  if (read === 0) throw new Error('nothing was told');
  report(measured(`${LABELS[mode]}: admitted, with event and explanation`, latencies.rate, '1/s'));
  report(measured(`${LABELS[mode]}: admitted, with event and explanation, p99`, latencies.quantile(0.99), 'us'));
}

function measureDenied(report: BenchOptions['report'], quota: Quota, world: World, mode: Mode, count: number): void {
  const { podSets, ...demand } = demandOf(world, count);
  const tooMuch = { ...demand, podSets: podSets.map((podSet) => ({ ...podSet, count: 1e9 })) };
  const latencies = new Latencies(DENIED);
  const before = reachableBytes();
  for (let index = 0; index < DENIED; index++) {
    const started = performance.now();
    const { allowed } = quota.admit(tooMuch);
    latencies.add(performance.now() - started);
    if (allowed) throw new Error('a thousand million pods were admitted');
  }
  report(measured(`${LABELS[mode]}: denied by one full group`, latencies.rate, '1/s'));
  report(
    measured(`${LABELS[mode]}: memory left behind by a denial`, Math.max(0, reachableBytes() - before) / DENIED, 'B'),
  );
}
