import { test } from 'tap';
import {
  arbitrate,
  NO_MEMORY,
  type ArbitratedNode,
  type ConsumerSpec,
  type RunningPod,
  type Situation,
  type WaitingPod,
} from '../../../src/quota/arbitrator/index.js';
import { generator } from '../../generator.js';
import { missedVictims, SimulatedCluster, type Template } from './simulated-cluster.js';
import { cases } from '../../cases.js';

const NOW = { graceMs: 0, cooldownMs: 0 };
const gpus = (count: number): ReadonlyMap<string, number> => new Map([['gpu', count]]);
const node = (name: string, count: number, more: Partial<ArbitratedNode> = {}): ArbitratedNode => ({
  name,
  allocatable: gpus(count),
  podSlots: 110,
  ...more,
});
const runs = (id: string, consumer: string, at: string, count: number, more: Partial<RunningPod> = {}): RunningPod => ({
  id,
  consumer,
  node: at,
  uses: gpus(count),
  priority: 0,
  startedAt: Number(id.replace(/\D/g, '')),
  ...more,
});
const waits = (id: string, consumer: string, count: number, more: Partial<WaitingPod> = {}): WaitingPod => ({
  id,
  consumer,
  uses: gpus(count),
  priority: 0,
  since: 0,
  nodes: null,
  ...more,
});

function situation(
  nodes: readonly ArbitratedNode[],
  pods: readonly RunningPod[],
  waiting: readonly WaitingPod[],
  more: Partial<Situation> = {},
): Situation {
  const pending = new Map<string, ReadonlyMap<string, number>>();
  for (const { consumer, uses } of waiting)
    pending.set(consumer, gpus((pending.get(consumer)?.get('gpu') ?? 0) + (uses.get('gpu') ?? 0)));
  return {
    now: 1000,
    capacity: gpus(nodes.reduce((sum, { allocatable }) => sum + (allocatable.get('gpu') ?? 0), 0)),
    consumers: [],
    pods,
    pending,
    disruptions: new Map(),
    nodes,
    waiting,
    ...more,
  };
}

const singles = (at: string, from: number, count: number, consumer = 'a'): readonly RunningPod[] =>
  Array.from({ length: count }, (_, index) => runs(`p${from + index}`, consumer, at, 1));
const victims = (given: Situation): readonly string[] =>
  arbitrate(given, NO_MEMORY, NOW).evictions.map(({ pod }) => pod);

test('victims for a pod of eight GPUs are all on one node', (t) => {
  const nodes = [node('n1', 8), node('n2', 8)];
  const pods = [...singles('n1', 1, 8), ...singles('n2', 11, 8)];
  const plan = arbitrate(situation(nodes, pods, [waits('b1', 'b', 8)]), NO_MEMORY, NOW);
  t.match(plan.starts, [{ pod: 'b1', consumer: 'b', node: 'n2' }]);
  t.equal(plan.evictions.length, 8);
  t.ok(
    plan.evictions.every(({ pod }) => Number(pod.slice(1)) > 10),
    'the younger pods are evicted',
  );
  t.end();
});

test('pods beyond a quota go first, and none within a quota goes for a pod beyond one', (t) => {
  const beyond = { isBeyondQuota: true };
  const two = [node('n1', 2), node('n2', 2)];
  const old = [runs('p1', 'a', 'n1', 1, beyond), runs('p2', 'a', 'n1', 1), runs('p3', 'c', 'n2', 2)];
  t.same(victims(situation(two, old, [waits('b1', 'b', 1)])), ['p1'], 'the older pod is beyond the quota');
  const important = [runs('p1', 'a', 'n1', 2, { ...beyond, priority: 5 }), runs('p2', 'a', 'n2', 2)];
  t.same(victims(situation(two, important, [waits('b1', 'b', 2, { priority: 5 })])), ['p1'], 'of higher priority too');
  t.same(
    victims(situation(two, important, [waits('b1', 'b', 2)])),
    ['p2'],
    'but not if the scheduler would start it again before the pod that waits',
  );
  t.same(victims(situation(two, important.slice(1), [waits('b1', 'b', 2, beyond)])), [], 'n1 is free');
  const full = [runs('p1', 'a', 'n1', 2), runs('p2', 'a', 'n2', 2)];
  t.same(victims(situation(two, full, [waits('b1', 'b', 2, beyond)])), []);
  t.same(victims(situation(two, full, [waits('b1', 'b', 2)])), ['p2']);
  t.end();
});

test('in random situations a pod within its quota goes only if pods beyond a quota do not suffice', (t) => {
  let [planned, mixed] = [0, 0];
  for (let seed = 1; seed <= 1500; seed++) {
    const next = generator(seed);
    const below = (limit: number): number => Math.floor(next() * limit);
    const nodes = Array.from({ length: 1 + below(3) }, (_, index) => node(`n${index}`, 4));
    const pods: RunningPod[] = [];
    for (const { name } of nodes)
      for (let free = 4; free > 0;) {
        const count = 1 + below(Math.min(2, free));
        free -= count;
        const consumer = ['a', 'c', 'd'][below(3)] ?? 'a';
        const more = {
          isBeyondQuota: below(2) === 0,
          priority: below(3),
          ...(below(4) === 0 ? { budgets: ['pdb'] } : {}),
        };
        pods.push(runs(`p${pods.length + 1}`, consumer, name, count, more));
      }
    const waiting = [waits('b1', 'b', 1 + below(4), { priority: below(3) })];
    const more = { disruptions: new Map([['pdb', 1]]) };
    const plan = arbitrate(situation(nodes, pods, waiting, more), NO_MEMORY, NOW);
    const chosen = plan.evictions.map(({ pod }) => pods.find(({ id }) => id === pod));
    if (plan.starts.length > 0) planned++;
    if (!chosen.some((pod) => pod?.isBeyondQuota === false)) continue;
    mixed++;
    const kept = pods.map((pod) => ({ ...pod, isProtected: pod.isBeyondQuota === false }));
    t.same(arbitrate(situation(nodes, kept, waiting, more), NO_MEMORY, NOW).starts, [], `seed ${seed}`);
  }
  t.ok(planned > 200 && mixed > 20 && mixed < planned, `${planned} starts, ${mixed} of them with pods within a quota`);
  t.end();
});

test('nothing is evicted for a pod that would still not fit', (t) => {
  const eight = waits('b1', 'b', 8);
  t.same(victims(situation([node('n1', 8)], singles('n1', 1, 8), [eight])), [], 'the pod exceeds the fair share of b');
  const halves = [node('n1', 4), node('n2', 4), node('n3', 4), node('n4', 4)];
  const pods = ['n1', 'n2', 'n3', 'n4'].flatMap((name, index) => singles(name, index * 10 + 1, 4));
  t.same(victims(situation(halves, pods, [eight])), [], 'no node is large enough');
  t.same(
    victims(
      situation(
        [node('n1', 8), node('n2', 8)],
        [...singles('n1', 1, 8), ...singles('n2', 11, 8)],
        [waits('b1', 'b', 8, { nodes: new Set(['n3']) })],
      ),
    ),
    [],
    'its selector matches no existing node',
  );
  const mixed = [...singles('n1', 1, 7), runs('p8', 'a', 'n1', 1, { isProtected: true }), ...singles('n2', 11, 8)];
  t.same(
    victims(situation([node('n1', 8), node('n2', 8)], mixed, [waits('b1', 'b', 8, { nodes: new Set(['n1']) })])),
    [],
    'one possible victim is protected',
  );
  t.same(
    victims(
      situation([node('n1', 8), node('n2', 8)], [...singles('n1', 1, 8), ...singles('n2', 11, 8)], [eight], {
        disruptions: new Map([['pdb', 7]]),
        pods: [...singles('n1', 1, 8), ...singles('n2', 11, 8)].map((pod) => ({ ...pod, budgets: ['pdb'] })),
      }),
    ),
    [],
    'the budget allows seven evictions',
  );
  t.same(
    victims(
      situation([node('n1', 8), node('n2', 8)], [...singles('n1', 1, 8), ...singles('n2', 11, 8)], [eight], {
        pods: [...singles('n1', 1, 8), ...singles('n2', 11, 8)].map((pod) => ({ ...pod, priority: 1 })),
      }),
    ),
    [],
    'replacements of more important pods would be scheduled first',
  );
  t.end();
});

test('the node decides whether a pod fits where sums do not show free GPUs', (t) => {
  // Two GPUs of 100 cores each, 60 used on each: a pod of 80 does not fit.
  const whole = ({ uses }: WaitingPod, staying: readonly RunningPod[]): boolean =>
    ['0', '1'].some(
      (gpu) =>
        staying.reduce((sum, pod) => (pod.place === gpu ? sum + (pod.uses.get('gpu') ?? 0) : sum), 0) +
          (uses.get('gpu') ?? 0) <=
        100,
    );
  const pods = [runs('p1', 'a', 'n1', 60, { place: '0' }), runs('p2', 'a', 'n1', 60, { place: '1' })];
  const waiting = [waits('b1', 'b', 80), waits('b2', 'b', 80)];
  t.same(victims(situation([node('n1', 200, { fits: whole })], pods, waiting)), ['p2']);
  t.same(victims(situation([node('n1', 200)], pods, waiting)), [], 'one of the two pods fits by the sums');
  t.end();
});

test('room stays nominated for its pod, and nothing else is evicted for this pod meanwhile', (t) => {
  const nodes = [node('n1', 8), node('n2', 8)];
  const before = situation(nodes, [...singles('n1', 1, 8), ...singles('n2', 11, 8)], [waits('b1', 'b', 8)]);
  const first = arbitrate(before, NO_MEMORY, NOW);
  t.same([...first.memory.nominations.keys()], ['b1']);
  const leaving = before.pods.map((pod) => (pod.node === 'n2' ? { ...pod, isLeaving: true } : pod));
  const second = arbitrate({ ...before, now: 2000, pods: leaving }, first.memory, NOW);
  t.same(second.evictions, []);
  const gone = { ...before, now: 3000, pods: singles('n1', 1, 8) };
  const successors = singles('', 31, 8).map(({ id }) => waits(id, 'a', 1));
  t.same(arbitrate({ ...gone, waiting: [...successors, waits('b1', 'b', 8)] }, second.memory, NOW).evictions, []);
  t.same(
    arbitrate({ ...gone, waiting: [waits('b1', 'b', 8, { nominated: 'n2' })] }, NO_MEMORY, NOW).memory.nominations.get(
      'b1',
    ),
    { node: 'n2', since: 3000, isExternal: true },
    'a new arbitrator finds the nomination at the API server',
  );
  const late = arbitrate({ ...gone, now: 3000 + 300_000 }, { ...second.memory }, NOW);
  t.notOk(late.memory.nominations.has('b1'), 'the nomination ends');
  t.ok(late.memory.backoffUntil.has('b1'), 'nothing is evicted for this pod during the backoff');
  t.end();
});

test('an overused consumer gets a notice first, and its pods are evicted after the grace period', (t) => {
  const given = situation(
    [node('n1', 8), node('n2', 8)],
    [...singles('n1', 1, 8), ...singles('n2', 11, 8)],
    [waits('b1', 'b', 8)],
  );
  const policy = { graceMs: 30_000 };
  const first = arbitrate(given, NO_MEMORY, policy);
  t.same(first.evictions, []);
  t.equal(first.allocations.find(({ name }) => name === 'a')?.reclaimAt, 31_000);
  t.equal(arbitrate({ ...given, now: 30_999 }, first.memory, policy).evictions.length, 0);
  t.equal(arbitrate({ ...given, now: 31_000 }, first.memory, policy).evictions.length, 8);
  const hopeless = situation([node('n1', 8)], singles('n1', 1, 8), [waits('b1', 'b', 8)]);
  t.equal(
    arbitrate(hopeless, NO_MEMORY, policy).allocations[0]?.reclaimAt,
    null,
    'no notice without a possible eviction',
  );
  t.end();
});

/** A random cluster with consumers and templates. */
function randomCluster(seed: number): { readonly cluster: SimulatedCluster; readonly templates: readonly Template[] } {
  const random = generator(seed * 7919 + 1);
  const below = (most: number): number => Math.floor(random() * most);
  const of = <T>(...all: readonly T[]): T => all[below(all.length)] as T;
  const size = of(4, 8, 8);
  const names = Array.from({ length: 2 + below(3) }, (_, index) => `n${index}`);
  const nodes = names.map((name): ArbitratedNode => ({
    name,
    allocatable: new Map([
      ['gpu', size],
      ['cpu', size * of(4, 8)],
    ]),
    podSlots: of(110, 110, size),
  }));
  const consumers = Array.from({ length: 2 + below(3) }, (_, index): ConsumerSpec => ({
    name: 'abcd'.charAt(index),
    weight: of(1, 1, 2),
    ...(below(4) === 0 ? { reserved: new Map([['gpu', 1 + below(size)]]) } : {}),
    ...(below(5) === 0 ? { hard: new Map([['gpu', 1 + below(2 * size)]]) } : {}),
  }));
  // Different priorities exist from the start only: later pods of higher priority are scheduled first anyway.
  const priorities = below(3) === 0 ? [0, 10] : [0];
  const templates = consumers.flatMap(({ name: consumer }) =>
    Array.from({ length: 1 + below(2) }, (): Template => {
      const count = of(0, 1, 1, 2, 4, size);
      return {
        consumer,
        uses: new Map([...(count === 0 ? [] : [['gpu', count] as const]), ['cpu', Math.max(1, count * of(1, 2, 4))]]),
        priority: of(...priorities),
        nodes: below(4) === 0 ? new Set(names.filter(() => below(2) === 0)) : null,
        budget: below(4) === 0 ? consumer : null,
      };
    }),
  );
  const cluster = new SimulatedCluster({
    nodes,
    consumers,
    random,
    policy: { graceMs: of(0, 10_000, 30_000), cooldownMs: of(0, 15_000, 60_000), lendReserved: below(2) === 0 },
    budgets: new Map(consumers.map(({ name }) => [name, below(4)])),
    graceMs: of(0, 10_000, 30_000),
  });
  return { cluster, templates };
}

const SITUATIONS = cases(25, 270);
const STEP_MS = 5_000;
const MINUTE_MS = 60_000;

test(`in ${SITUATIONS} clusters of 20 minutes every eviction leads to a start, and no possible victim set is missed`, (t) => {
  let [evictions, found] = [0, 0];
  for (let seed = 1; seed <= SITUATIONS; seed++) {
    const { cluster, templates } = randomCluster(seed);
    const random = generator(seed + 12_345);
    const burst = (count: number, among: readonly Template[]): void => {
      for (let made = 0; made < count; made++) {
        const template = among[Math.floor(random() * among.length)];
        if (template !== undefined) cluster.add(template);
      }
    };
    // The first consumer uses the cluster before the others arrive.
    burst(
      40,
      templates.filter(({ consumer }) => consumer === 'a'),
    );
    const low = templates.filter(({ priority }) => priority === 0);
    for (let at = 0; at < 20 * MINUTE_MS; at += STEP_MS) {
      if (at === MINUTE_MS) burst(10, templates);
      const isBusy = at > MINUTE_MS && at < 12 * MINUTE_MS;
      if (isBusy && random() < 0.1) burst(1 + Math.floor(random() * 3), low);
      if (isBusy && random() < 0.1) cluster.end();
      cluster.pass(STEP_MS);
    }
    evictions += cluster.carriedOut.reduce((sum, { start }) => sum + start.victims.length, 0);
    found += cluster.carriedOut.length;
    const vain = cluster.carriedOut.filter(({ start }) => !cluster.startedAt.has(start.pod));
    if (vain.length > 0) t.fail(`seed ${seed}: ${vain.map(({ start, at }) => `${start.pod} at ${at}`).join()}`);
    const set = missedVictims(cluster.situation(), cluster.policy);
    if (set !== null) t.fail(`seed ${seed}: missed ${set}`);
  }
  t.ok(found > SITUATIONS / 2, `${evictions} evictions for ${found} starts`);
  t.end();
});
