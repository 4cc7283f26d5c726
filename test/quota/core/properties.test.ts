import fc from 'fast-check';
import { test } from 'tap';
import { plus, type Amount } from '../../../src/manifests/amount.js';
import { applyRecord } from '../../../src/quota/core/records/apply-record.js';
import { consumedAt, usedAt } from '../../../src/quota/core/state/budget.js';
import { execute } from '../../../src/quota/core/execute.js';
import { DEFAULT_POLICY } from '../../../src/quota/core/state/policy.js';
import { refresh } from '../../../src/quota/core/reports/refresh.js';
import { Restorer, recordsOf } from '../../../src/quota/core/records/restore.js';
import type { StoredRecord } from '../../../src/quota/core/records/record.js';
import { toRecord } from '../../../src/quota/core/records/record-format.js';
import { ShapeDictionary } from '../../../src/quota/core/records/shape-dictionary.js';
import { QuotaState } from '../../../src/quota/core/state/state.js';
import { WORKLOADS, busyHistory, command, dump, history, type Timed } from './histories.js';
import { cases } from '../../cases.js';

const fresh = (): QuotaState => new QuotaState(DEFAULT_POLICY);

function run(state: QuotaState, steps: readonly Timed[]): void {
  for (const { command: each, at } of steps) execute(state, each, at);
}

const histories = (maxLength: number) => fc.oneof(history(maxLength), busyHistory(maxLength));

test('after any history, the incremental counters equal a recount', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      run(state, steps);
      // Budgets record the thresholds that a refresh announces.
      const counted = () =>
        dump(state)
          .split('\n')
          .slice(1)
          .filter((line) => !line.includes('announced'))
          .join();
      const before = counted();
      return refresh(state).drift.length === 0 && counted() === before;
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('a state that is stored and restored is the same', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      run(state, steps);
      const dictionary = new ShapeDictionary();
      const records = [...recordsOf(state)].map(
        (change) => JSON.parse(JSON.stringify(toRecord(change, dictionary))) as StoredRecord,
      );
      const restorer = new Restorer(DEFAULT_POLICY);
      for (const record of records) restorer.add(record);
      return dump(restorer.finish(state)) === dump(state);
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});

test('applying the records of changes in order gives the same state', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      const restorer = new Restorer(DEFAULT_POLICY);
      const dictionary = new ShapeDictionary();
      state.onChange = (change) =>
        restorer.add(JSON.parse(JSON.stringify(toRecord(change, dictionary))) as StoredRecord);
      run(state, steps);
      return dump(restorer.finish(state)) === dump(state);
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});

test('a replica that only applies records has the same state', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const [state, follower] = [fresh(), fresh()];
      const [written, read] = [new ShapeDictionary(), new ShapeDictionary()];
      state.onChange = (change) =>
        applyRecord(follower, JSON.parse(JSON.stringify(toRecord(change, written))) as StoredRecord, read);
      run(state, steps);
      Object.assign(follower, { revision: state.revision, now: state.now, lives: state.lives });
      return dump(follower) === dump(state) && refresh(follower).drift.length === 0;
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('children never have more than their parent, except after a forced change', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      for (const { command: each, at } of steps) {
        execute(state, each, at);
        for (const [, group] of state.groups.entries()) {
          if (group.layout.keys.some((_, slot) => group.amounts.childSum(slot) > group.amounts.hard(slot)))
            return false;
        }
      }
      return true;
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});

test('no command raises usage above its limit', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      for (const { command: each, at } of steps) {
        // Due timers, such as the end of a loan, may leave a group over its quota.
        execute(state, { type: 'tick' }, at);
        const before = over(state);
        execute(state, each, at);
        if (each.type === 'updateGroup' || each.type === 'createGroup' || each.type === 'deleteGroup') continue;
        for (const [key, amount] of over(state)) if (amount > (before.get(key) ?? 0)) return false;
      }
      return true;
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

/** Overdraft of the pools that no ancestor backs. */
function over(state: QuotaState): Map<string, Amount> {
  const found = new Map<string, Amount>();
  for (const [, group] of state.groups.entries()) {
    const parent = state.group(group.parent);
    group.layout.keys.forEach((key, slot) => {
      if (group.mode === 'elastic' && parent?.layout.slots.has(key) === true) return;
      const used = group.amounts.subtreeUsage(slot);
      if (used > group.amounts.subtreeQuota(slot))
        found.set(`${group.name} ${key}`, Number(used) - Number(group.amounts.subtreeQuota(slot)));
    });
  }
  return found;
}

test('the workloads of a tree together fit its root', (t) => {
  const noStructure = busyHistory(80).map((steps) =>
    steps.filter(({ command: { type } }, at) => at < 6 || !['updateGroup', 'deleteGroup', 'loan'].includes(type)),
  );
  fc.assert(
    fc.property(noStructure, (steps) => {
      const state = fresh();
      run(state, steps);
      const total = ['root', 'a', 'b', 'a1', 'a2'].reduce<Amount>(
        (sum, name) => plus(sum, state.group(name)?.amounts.selfUsed(0) ?? 0),
        0,
      );
      return total <= 40_000;
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('releasing every workload leaves no charge', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      run(state, steps);
      for (const name of WORKLOADS)
        execute(state, { type: 'release', workload: { kind: 'Deployment', namespace: 'ns', name } }, state.now);
      return [...state.groups.entries()].every(
        ([, group]) =>
          group.layout.keys.every((_, slot) => group.amounts.subtreeUsage(slot) === 0) &&
          group.workloads.size === 0 &&
          group.reserved.size === 0,
      );
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});

test('a refusal and a dry run do not change the state', (t) => {
  fc.assert(
    fc.property(histories(40), command, (steps, last) => {
      const state = fresh();
      run(state, steps);
      execute(state, { type: 'tick' }, state.now);
      const before = dump(state);
      const tried = 'dryRun' in last || last.type === 'admit' ? { ...last, dryRun: true } : last;
      const decision = execute(state, tried, state.now);
      const harmless = !decision.allowed || ('dryRun' in tried && tried.dryRun === true);
      return !harmless || dump(state) === before;
    }),
    { numRuns: 400 },
  );
  t.end();
});

test('a simulation predicts the real decisions and changes nothing', (t) => {
  fc.assert(
    fc.property(histories(30), history(30), (steps, script) => {
      const state = fresh();
      run(state, steps);
      const before = dump(state);
      const fork = state.fork();
      const simulated = script.map(({ command: each, at }) => execute(fork, each, at));
      const untouched = dump(state) === before;
      const foreseen = dump(fork);
      const adopted = fresh();
      run(adopted, steps);
      const second = adopted.fork();
      run(second, script);
      adopted.applyFork(second);
      const real = script.map(({ command: each, at }) => execute(state, each, at));
      const same = real.every(
        (decision, index) => decision.code === simulated[index]?.code && decision.message === simulated[index]?.message,
      );
      return untouched && same && foreseen === dump(state) && dump(adopted) === dump(state);
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('admitting and releasing changes nothing but the count of changes', (t) => {
  fc.assert(
    fc.property(histories(40), (steps) => {
      const state = fresh();
      run(state, steps);
      const before = dump(state).split('\n').slice(1).join('\n');
      const workload = { kind: 'Job', namespace: 'ns', name: 'fresh' };
      const decision = execute(
        state,
        { type: 'admit', workload, group: 'a1', podSets: [{ count: 1, limits: { cpu: 1, memory: 1 } }] },
        state.now,
      );
      if (decision.allowed) execute(state, { type: 'release', workload }, state.now);
      return dump(state).split('\n').slice(1).join('\n') === before;
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});

test('more quota never turns an admission into a refusal', (t) => {
  fc.assert(
    fc.property(histories(40), command, fc.integer({ min: 1, max: 9 }), (steps, last, more) => {
      const [less, plenty] = [fresh(), fresh()];
      run(less, steps);
      run(plenty, steps);
      const root = plenty.group('root');
      if (root === undefined || last.type !== 'admit') return true;
      const hard = Object.fromEntries([
        ...root.layout.keys.map((key, slot) => [key, BigInt(root.amounts.hard(slot)) + BigInt(more)] as const),
        ...root.budgets.filter(({ listed }) => listed).map(({ key, base }) => [`cash/${key}`, base] as const),
      ]);
      execute(plenty, { type: 'updateGroup', name: 'root', hard }, plenty.now);
      return !execute(less, last, less.now).allowed || execute(plenty, last, plenty.now).allowed;
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('decisions about different groups in carved mode do not depend on their order', (t) => {
  const podSet = fc.record({ count: fc.nat(6), limits: fc.record({ cpu: fc.nat(4), memory: fc.nat(3) }) });
  const pair = fc.constantFrom(['a1', 'a2'] as const, ['a', 'b'] as const, ['root', 'other'] as const);
  let compared = 0;
  fc.assert(
    fc.property(busyHistory(40), podSet, podSet, pair, (steps, one, two, [first, second]) => {
      const admit = (name: string, group: string, pods: typeof one) => ({
        type: 'admit' as const,
        workload: { kind: 'Job', namespace: 'ns', name },
        group,
        podSets: [pods],
      });
      const [there, back] = [fresh(), fresh()];
      run(there, steps);
      run(back, steps);
      // A loan to one group is not available to another.
      if ([...there.groups.entries()].some(([, { mode }]) => mode === 'elastic')) return true;
      compared++;
      const asked = [admit('one', first, one), admit('two', second, two)];
      const answers = asked.map((each) => execute(there, each, there.now).code);
      const backwards = [...asked]
        .reverse()
        .map((each) => execute(back, each, back.now).code)
        .reverse();
      return answers.join() === backwards.join() && dump(there) === dump(back);
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.ok(compared > 20, `${compared} comparisons`);
  t.end();
});

interface PodLine {
  readonly from: number;
  readonly long: number;
  readonly cores: number;
}

test('cash is the integral of the amounts of pods, in any order and with any delay of events', (t) => {
  const pods = fc.array(
    fc.record<PodLine>({ from: fc.nat(100), long: fc.nat(100), cores: fc.integer({ min: 1, max: 9 }) }),
    { minLength: 1, maxLength: 12 },
  );
  fc.assert(
    fc.property(pods, fc.infiniteStream(fc.nat()), fc.nat(100), (lines, orders, now) => {
      const state = fresh();
      const at = 200 + now;
      execute(state, { type: 'createGroup', name: 'g', hard: { 'cash/limits.cpu': 1 } }, 0);
      const events = lines.flatMap(({ from, long, cores }, index) => [
        {
          type: 'podStarted' as const,
          pod: `p${index}`,
          workload: { kind: 'Job', name: 'j' },
          group: 'g',
          limits: { cpu: cores },
          since: from,
        },
        // Every third pod is still running.
        ...(index % 3 === 2 ? [] : [{ type: 'podStopped' as const, pod: `p${index}`, end: from + long }]),
      ]);
      const order = events
        .map((event) => ({ event, rank: orders.next().value as number }))
        .sort((a, b) => a.rank - b.rank);
      for (const { event } of order) execute(state, event, at);
      for (const { event } of order.slice(0, 3)) execute(state, event, at);
      const expected = lines.reduce(
        (sum, { from, long, cores }, index) => sum + cores * 1000 * (index % 3 === 2 ? at - from : long),
        0,
      );
      const budget = state.group('g')?.budgets[0];
      return budget !== undefined && consumedAt(budget, at) === BigInt(expected);
    }),
    { numRuns: cases(100, 2_000) },
  );
  t.end();
});

test('used hours of a tree are never returned, whatever happens to its groups', (t) => {
  fc.assert(
    fc.property(busyHistory(60), (steps) => {
      const state = fresh();
      let consumed = 0n;
      for (const { command: each, at } of steps) {
        // Usage of a tree can decrease only by a late end, a resize, or the deletion of a root.
        if (
          each.type === 'podStopped' ||
          each.type === 'podStarted' ||
          (each.type === 'deleteGroup' && each.name === 'root')
        )
          continue;
        execute(state, each, at);
        const now = [...state.groups.entries()]
          .filter(([name]) => name !== 'other')
          .reduce((sum, [, group]) => {
            const budget = group.budgets.find(({ key }) => key === 'limits.cpu');
            return sum + (budget === undefined ? 0n : consumedAt(budget, state.now));
          }, 0n);
        if (now < consumed) return false;
        consumed = now;
      }
      return true;
    }),
    { numRuns: 100 },
  );
  t.end();
});

test('a budget is consumed exactly by its group and by what the group gave to children', (t) => {
  fc.assert(
    fc.property(histories(60), (steps) => {
      const state = fresh();
      run(state, steps);
      return [...state.groups.entries()].every(([name, group]) =>
        group.budgets
          .filter(({ listed }) => listed)
          .every((budget) => {
            let given = 0n;
            for (const [, child] of state.groups.entries()) {
              if (child.parent === name)
                given += child.budgets.find(({ key, listed }) => listed && key === budget.key)?.hard ?? 0n;
            }
            return usedAt(budget, state.now) === consumedAt(budget, state.now) + given;
          }),
      );
    }),
    { numRuns: cases(70, 1_500) },
  );
  t.end();
});
