import { test } from 'tap';
import {
  arbitrate,
  cohortSituations,
  keptKey,
  NO_MEMORY,
  Quota,
  type ArbitratedGroup,
  type ArbitrationPlan,
  type ChargedWorkload,
  type Quantities,
  type RefusedWorkload,
} from '../../../src/quota/index.js';
import { generator } from '../../generator.js';

const CPU = 'limits.cpu';
const cpu = (amount: number): Quantities => new Map([[CPU, amount]]);
const NOW = { graceMs: 0, cooldownMs: 0, keepsReserved: false };
const group = (name: string, hard: number, more: Partial<ArbitratedGroup> = {}): ArbitratedGroup => ({
  name,
  parent: 'root',
  isElastic: true,
  hard: cpu(hard),
  reclaim: 'FairShare',
  ...more,
});
const ROOT = group('root', 10, { parent: '', isElastic: false });
const runs = (id: string, consumer: string, amount: number, more: Partial<ChargedWorkload> = {}): ChargedWorkload => ({
  id,
  consumer,
  uses: cpu(amount),
  priority: 0,
  startedAt: Number(id.replace(/\D/g, '')),
  ...more,
});
const waits = (id: string, consumer: string, amount: number): RefusedWorkload => ({
  id,
  consumer,
  uses: cpu(amount),
  since: Number(id.replace(/\D/g, '')),
});

function plan(
  groups: readonly ArbitratedGroup[],
  workloads: readonly ChargedWorkload[],
  refused: readonly RefusedWorkload[],
  disruptions: ReadonlyMap<string, number> = new Map(),
): ArbitrationPlan | null {
  const [situation] = cohortSituations({ now: 0, groups, workloads, refused, disruptions }).values();
  return situation === undefined ? null : arbitrate(situation, NO_MEMORY, NOW);
}

const victims = (...given: Parameters<typeof plan>): readonly string[] | undefined =>
  plan(...given)?.evictions.map(({ pod }) => pod);

test('a group gets its guaranteed part back from borrowers, the least important and youngest workloads first', (t) => {
  const groups = [ROOT, group('a', 6), group('b', 4)];
  const old = [runs('w1', 'b', 4), runs('w2', 'b', 3, { priority: 1 }), runs('w3', 'b', 3)];
  t.same(victims(groups, old, [waits('r1', 'a', 3)]), ['w3']);
  t.same(victims(groups, old, [waits('r1', 'a', 6)]), ['w3', 'w1'], 'w2 is more important than both');
  t.same(victims(groups, old, [waits('r1', 'a', 7)]), [], 'beyond its part and its share');
  t.same(victims(groups, [runs('w1', 'b', 7)], [waits('r1', 'a', 3)]), [], 'free room is enough');
  const budget = { budgets: ['pdb', 'pdb'] };
  t.same(
    victims(groups, [runs('w1', 'b', 5), runs('w2', 'b', 5, budget)], [waits('r1', 'a', 3)], new Map([['pdb', 1]])),
    ['w1'],
    'two pods of w2 have a budget that allows one',
  );
  t.same(victims(groups, [runs('w1', 'b', 10)], [waits('r1', 'a', 3)]), ['w1'], 'a guarantee does not depend on sizes');
  t.end();
});

test('a group that does not reclaim evicts nothing, and one that reclaims its guaranteed part no more than that', (t) => {
  const running = [runs('w1', 'c', 2), runs('w2', 'c', 2), runs('w3', 'c', 2), runs('w4', 'c', 2), runs('w5', 'c', 2)];
  const groups = (reclaim: ArbitratedGroup['reclaim']): readonly ArbitratedGroup[] => [
    ROOT,
    group('a', 2, { reclaim }),
    group('c', 2),
  ];
  t.same(victims(groups('Never'), running, [waits('r1', 'a', 2)]), []);
  t.same(victims(groups(undefined), running, [waits('r1', 'a', 2)]), [], 'the default');
  t.same(victims(groups('Guaranteed'), running, [waits('r1', 'a', 2), waits('r2', 'a', 2)]), ['w5']);
  t.same(victims(groups('FairShare'), running, [waits('r1', 'a', 2), waits('r2', 'a', 2)]), ['w5', 'w4']);
  t.end();
});

test('what a group does not lend is not given away, and a borrowing limit is a limit', (t) => {
  const running = [runs('w1', 'b', 8)];
  t.same(victims([ROOT, group('a', 6, { lend: cpu(4) }), group('b', 4)], running, [waits('r1', 'b', 2)]), []);
  const limited = [ROOT, group('a', 6), group('b', 2, { borrow: cpu(1) }), group('c', 2)];
  t.same(victims(limited, [runs('w1', 'c', 10)], [waits('r1', 'b', 4)]), [], 'b may use three');
  t.same(victims(limited, [runs('w1', 'c', 7), runs('w3', 'c', 3)], [waits('r1', 'b', 3)]), ['w3']);
  t.end();
});

test('refused workloads come in the order of weighted shares, and those within a guaranteed part first', (t) => {
  const groups = [ROOT, group('a', 1), group('b', 1, { weight: 3 }), group('c', 4)];
  const order = (refused: readonly RefusedWorkload[], running: readonly ChargedWorkload[] = []): readonly string[] => {
    const input = { now: 0, groups, workloads: running, refused, disruptions: new Map<string, number>() };
    const [situation] = cohortSituations(input).values();
    return (situation?.waiting ?? []).map(({ id }) => id);
  };
  const all = [waits('r1', 'a', 2), waits('r2', 'a', 2), waits('r3', 'b', 2), waits('r4', 'b', 2), waits('r5', 'b', 2)];
  t.same(order(all), ['r1', 'r3', 'r4', 'r5', 'r2'], 'b has three times the weight of a');
  t.same(order([...all, waits('r6', 'c', 4)], [])[0], 'r6');
  t.end();
});

test('room that is kept for others is refused to the rest, except what a group lends to nobody', (t) => {
  const none: Quantities = new Map();
  t.equal(keptKey({ adds: cpu(3), room: cpu(5), unlent: none, kept: cpu(3) }), CPU);
  t.equal(keptKey({ adds: cpu(2), room: cpu(5), unlent: none, kept: cpu(3) }), null);
  t.equal(keptKey({ adds: cpu(3), room: cpu(5), unlent: cpu(3), kept: cpu(3) }), null);
  t.equal(keptKey({ adds: new Map([['pods', 1]]), room: none, unlent: none, kept: cpu(3) }), null);
  t.end();
});

test('in random cohorts a workload fits into the situation exactly if the engine admits it', (t) => {
  let [yes, no] = [0, 0];
  for (let seed = 1; seed <= 1500; seed++) {
    const random = generator(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const limit = (): { readonly lend?: Quantities; readonly borrow?: Quantities } => ({
      ...(below(3) === 0 ? { lend: cpu(below(6)) } : {}),
      ...(below(3) === 0 ? { borrow: cpu(below(6)) } : {}),
    });
    const groups: ArbitratedGroup[] = [group('root', 30, { parent: '', isElastic: false })];
    const left = new Map([['root', 30]]);
    for (let index = 0; index < 2 + below(5); index++) {
      const parent = groups[below(groups.length)]?.name ?? 'root';
      const hard = below((left.get(parent) ?? 0) + 1);
      const isElastic = below(5) > 0;
      groups.push(group(`g${index}`, hard, { parent, isElastic, ...(isElastic ? limit() : {}) }));
      left.set(parent, (left.get(parent) ?? 0) - hard);
      left.set(`g${index}`, hard);
    }
    const quota = new Quota();
    const hard = (amounts: Quantities | undefined) => ({ [CPU]: BigInt(amounts?.get(CPU) ?? 0) });
    for (const each of groups)
      quota.createGroup({
        name: each.name,
        ...(each.parent === '' ? {} : { parent: each.parent }),
        mode: each.isElastic ? 'elastic' : 'carved',
        hard: hard(each.hard),
        ...(each.lend === undefined ? {} : { lend: hard(each.lend) }),
        ...(each.borrow === undefined ? {} : { borrow: hard(each.borrow) }),
      });
    const admit = (id: string, to: string, amount: number, dryRun: boolean): boolean =>
      quota.admit(
        { workload: { kind: 'Job', name: id }, group: to, podSets: [{ count: 1, limits: { cpu: BigInt(amount) } }] },
        { dryRun },
      ).allowed;
    const workloads: ChargedWorkload[] = [];
    for (let index = 0; index < 12; index++) {
      const [to, amount] = [groups[below(groups.length)]?.name ?? 'root', 1 + below(6)];
      if (admit(`w${index}`, to, amount, false)) workloads.push(runs(`w${index}`, to, amount));
    }
    const asked = waits('r1', groups[below(groups.length)]?.name ?? 'root', 1 + below(8));
    const [situation] = cohortSituations({
      now: 0,
      groups,
      workloads,
      refused: [asked],
      disruptions: new Map(),
    }).values();
    const pod = situation?.waiting?.[0];
    const fits = pod !== undefined && situation?.nodes?.[0]?.fits?.(pod, situation.pods, []) === true;
    const isAdmitted = admit('r1', asked.consumer, asked.uses.get(CPU) ?? 0, true);
    if (isAdmitted) yes++;
    else no++;
    const isImpossible = pod?.uses.size === 0;
    if (fits !== isAdmitted && !isImpossible) t.fail(`seed ${seed}: the engine says ${isAdmitted}`);
  }
  t.ok(yes > 300 && no > 300, `${yes} fit, ${no} do not`);
  t.end();
});

test('in a group with preemption an important workload takes the room of less important ones, if it then fits', (t) => {
  const own = group('own', 6, { parent: '', isElastic: false, reclaim: 'Never', preemption: 'LowerPriority' });
  const needs = (id: string, amount: number, priority: number): RefusedWorkload => ({
    ...waits(id, 'own', amount),
    priority,
  });
  const running = [runs('w1', 'own', 2, { priority: 5 }), runs('w2', 'own', 2), runs('w3', 'own', 2)];
  t.same(victims([own], running, [needs('r1', 2, 5)]), ['w3'], 'the youngest of the least important');
  t.same(victims([own], running, [needs('r1', 4, 5)]), ['w3', 'w2']);
  t.same(victims([own], running, [needs('r1', 5, 5)]), [], 'without one of its own priority it would not fit');
  t.same(
    victims([own], running, [needs('r1', 5, 6)]),
    ['w2', 'w3', 'w1'].sort((a, b) => (a > b ? -1 : 1)),
  );
  t.same(victims([own], running, [needs('r1', 2, 0)]), [], 'equal priority');
  t.same(victims([{ ...own, preemption: 'Never' }], running, [needs('r1', 2, 9)]), [], 'it did not ask for it');
  t.same(
    victims([own], running.with(2, runs('w3', 'own', 2, { startedAt: null })), [needs('r1', 2, 5)]),
    ['w2'],
    'the priority of a workload without pods is not known',
  );
  const kept = runs('w3', 'own', 2, { budgets: ['pdb'] });
  t.same(victims([own], running.with(2, kept), [needs('r1', 2, 5)], new Map([['pdb', 0]])), ['w2'], 'a budget');
  const [first] = plan([own], running, [needs('r1', 2, 1), needs('r2', 2, 7)])?.starts ?? [];
  t.match(first, { pod: 'r2', victims: [{ pod: 'w3', consumer: 'own', beneficiaries: ['own'] }] });
  t.end();
});

test('a group with preemption stops first what borrows from it, and then its own less important workloads', (t) => {
  const groups = [ROOT, group('a', 6, { preemption: 'LowerPriority', reclaim: 'Guaranteed' }), group('b', 4)];
  const running = [runs('w1', 'a', 2), runs('w2', 'b', 4), runs('w3', 'b', 4)];
  const refused = (amount: number): readonly RefusedWorkload[] => [{ ...waits('r1', 'a', amount), priority: 3 }];
  t.same(victims(groups, running, refused(3)), ['w3']);
  t.same(victims(groups, running.slice(0, 2), refused(6)), ['w1'], 'beyond its guaranteed part only its own room');
  t.end();
});

test('of borrowers, those that had more hours get less, and none of them nothing', (t) => {
  const hours = (borrowed: number): Pick<ArbitratedGroup, 'borrowedHours'> => ({ borrowedHours: cpu(borrowed) });
  const shares = (...had: readonly number[]): readonly (number | undefined)[] => {
    const members = had.map((borrowed, index) => group(`b${index}`, 0, { ...hours(borrowed) }));
    const refused = members.map(({ name }) => waits('r1', name, 10));
    const found = plan(
      [{ ...ROOT, hard: cpu(1000) }, group('owner', 1000), ...members],
      [],
      refused.map((each, index) => ({ ...each, id: `r${index}`, uses: cpu(1000) })),
    );
    return members.map(({ name }) => found?.allocations.find((each) => each.name === name)?.deserved.get(CPU));
  };
  t.same(shares(0, 0), [500, 500], 'nobody had any');
  t.same(shares(7, 7), [500, 500], 'both had the same');
  t.same(shares(3, 1), [261, 738], '2.25 and 0.75 times the third that is due to each of three');
  t.same(shares(1, 0), [111, 888], 'all hours: halved three times');
  const [most = 0, ...others] = shares(9, 0, 0, 0, 0, 0, 0, 0);
  t.equal(Math.floor(1000 / (7 * 16 + 1)), most, 'at most four times');
  t.ok(others.every((each) => each === others[0]));
  t.end();
});

test('a borrower that had many hours gives back first, and the one that had fewer is served first', (t) => {
  const groups = (hours: number): readonly ArbitratedGroup[] => [
    ROOT,
    group('owner', 10),
    group('a', 0, { borrowedHours: cpu(hours) }),
    group('b', 0, { borrowedHours: cpu(1) }),
  ];
  const running = [runs('w1', 'a', 5), runs('w2', 'b', 5)];
  t.same(victims(groups(100), running, [waits('r1', 'owner', 5)]), ['w1']);
  t.same(victims(groups(0), running, [waits('r1', 'owner', 5)]), ['w2']);
  const free = [runs('w1', 'owner', 8)];
  const both = [waits('r1', 'a', 2), waits('r2', 'b', 2)];
  t.same(plan(groups(100), free, both)?.fitting, ['r1'], 'both shares are zero: the oldest');
  const some = [...free.slice(0, 0), runs('w3', 'a', 1), runs('w4', 'b', 1), runs('w5', 'owner', 6)];
  t.same(plan(groups(100), some, both)?.fitting, ['r2'], 'the smaller weighted share');
  t.end();
});
