import fc from 'fast-check';
import { test } from 'tap';
import { Quota } from '../../../../src/quota/index.js';

const HOUR = 3_600_000;
const CASH = 'cash/limits.cpu';

function siblings(hard: Readonly<Record<string, number>> = { 'limits.cpu': 10, [CASH]: 100 }) {
  let now = HOUR;
  const quota = new Quota({ clock: () => now });
  quota.createGroup({ name: 'company', hard: { 'limits.cpu': 30, [CASH]: 300 } });
  for (const name of ['a', 'b']) quota.createGroup({ name, parent: 'company', hard });
  const cores = (name: string, key = 'limits.cpu'): number =>
    Number(quota.status(name)?.hard.get(key) ?? 0n) / 1000 / (key === CASH ? HOUR : 1);
  return {
    quota,
    cores,
    at: (ms: number): void => {
      now = ms;
      quota.execute({ type: 'tick' });
    },
  };
}

test('a transfer moves quota between siblings permanently, and their sum stays', (t) => {
  const { quota, cores } = siblings();
  t.match(quota.transfer({ from: 'a', to: 'b', amounts: { 'limits.cpu': 4, [CASH]: 30 } }), { allowed: true });
  t.same([cores('a'), cores('b'), cores('a', CASH), cores('b', CASH)], [6, 14, 70, 130]);
  t.equal(quota.status('company')?.used.get('limits.cpu'), 20_000n);
  t.same(quota.refresh().drift, []);
  quota.admit({ workload: { kind: 'Job', name: 'w' }, group: 'a', podSets: [{ count: 1, limits: { cpu: 5 } }] });
  for (const [amounts, code] of [
    [{ 'limits.cpu': 2 }, 'TransferRefused'],
    [{ [CASH]: 71 }, 'TransferRefused'],
    [{ 'limits.cpu': 1, pods: 1 }, 'UnknownKey'],
    [{ 'limits.cpu': -1 }, 'InvalidQuantity'],
    [{}, 'InvalidQuantity'],
  ] as const)
    t.match(quota.transfer({ from: 'a', to: 'b', amounts }), { allowed: false, code }, JSON.stringify(amounts));
  t.match(quota.transfer({ from: 'a', to: 'company', amounts: { 'limits.cpu': 1 } }), { code: 'TransferRefused' });
  t.match(quota.transfer({ from: 'a', to: 'c', amounts: { 'limits.cpu': 1 } }), { code: 'GroupNotFound' });
  t.same([cores('a'), cores('b')], [6, 14], 'all of it moves or nothing');
  t.end();
});

test('a declared loan begins, survives a repeated declaration, and returns at its end', (t) => {
  const { quota, cores, at } = siblings();
  const loan = { name: 'sprint', to: 'b', amounts: { 'limits.cpu': 4 }, until: 3 * HOUR };
  const hard = { 'limits.cpu': 10, [CASH]: 100 };
  t.match(quota.updateGroup({ name: 'a', hard, loans: [loan] }), { allowed: true, warnings: [] });
  t.same([cores('a'), cores('b')], [6, 14]);
  t.same(quota.status('a')?.loaned, new Map([['limits.cpu', -4000n]]));
  quota.updateGroup({ name: 'a', hard, loans: [loan] });
  quota.updateGroup({ name: 'b', hard });
  t.same([cores('a'), cores('b')], [6, 14], 'limits are said without loans');
  quota.updateGroup({ name: 'b', hard: { ...hard, 'limits.cpu': 12 } });
  t.equal(cores('b'), 16);
  t.match(quota.updateGroup({ name: 'a', hard: { ...hard, 'limits.cpu': 3 } }), { code: 'LoanRefused' });
  at(3 * HOUR);
  t.same([cores('a'), cores('b')], [10, 12]);
  quota.updateGroup({ name: 'a', hard, loans: [loan] });
  t.same([cores('a'), cores('b')], [10, 12], 'a loan that is over is not made again');
  const another = { ...loan, name: 'another', until: 9 * HOUR };
  quota.updateGroup({ name: 'a', hard, loans: [another] });
  t.same([cores('a'), cores('b')], [6, 16]);
  quota.updateGroup({ name: 'a', hard, loans: [] });
  t.same([cores('a'), cores('b')], [10, 12], 'one that is taken out goes back at once');
  t.same(quota.refresh().drift, []);
  t.end();
});

test('an impossible loan refuses the change; for an observed object it is a warning', (t) => {
  const { quota, cores } = siblings();
  quota.admit({ workload: { kind: 'Job', name: 'w' }, group: 'a', podSets: [{ count: 1, limits: { cpu: 8 } }] });
  const loans = [{ name: 'x', to: 'b', amounts: { 'limits.cpu': 4 }, until: 9 * HOUR }];
  t.match(quota.updateGroup({ name: 'a', loans }), { allowed: false, code: 'LoanRefused' });
  const observed = quota.updateGroup({ name: 'a', loans, observed: 2, force: true });
  t.match(observed, {
    allowed: true,
    warnings: [{ code: 'LoanRefused', reason: /group a needs its limits.cpu itself/ }],
  });
  t.same([cores('a'), cores('b')], [10, 10]);
  for (const [wrong, code] of [
    [{ ...loans[0], name: 'a b' }, 'InvalidName'],
    [{ ...loans[0], until: 'soon' }, 'InvalidTime'],
    [{ ...loans[0], to: 'company' }, 'LoanRefused'],
    [{ ...loans[0], to: 'nobody' }, 'GroupNotFound'],
    [{ ...loans[0], amounts: { [CASH]: 1 } }, 'LoanRefused'],
  ] as const)
    t.match(quota.updateGroup({ name: 'a', loans: [wrong as (typeof loans)[0]] }), { allowed: false, code });
  t.end();
});

test('after any loans, transfers and declarations, the sum of the siblings equals their specifications', (t) => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          from: fc.constantFrom('a', 'b'),
          what: fc.constantFrom('lend', 'transfer', 'again', 'later'),
          amount: fc.integer({ min: 1, max: 7 }),
          hours: fc.integer({ min: 1, max: 5 }),
        }),
        { maxLength: 30 },
      ),
      (steps) => {
        const { quota, cores, at } = siblings();
        let now = HOUR;
        const said = { a: 10, b: 10 };
        steps.forEach(({ from, what, amount, hours }, index) => {
          const [giver, taker] = from === 'a' ? (['a', 'b'] as const) : (['b', 'a'] as const);
          const hard = { 'limits.cpu': said[giver], [CASH]: 100 };
          if (what === 'later') at((now += hours * HOUR));
          else if (what === 'again') quota.updateGroup({ name: giver, hard });
          else if (what === 'lend') {
            const loan = { name: `l${index}`, to: taker, amounts: { 'limits.cpu': amount }, until: now + hours * HOUR };
            quota.updateGroup({ name: giver, hard, loans: [loan] });
          } else if (quota.transfer({ from: giver, to: taker, amounts: { 'limits.cpu': amount } }).allowed) {
            said[giver] -= amount;
            said[taker] += amount;
          }
          if (cores('a') + cores('b') !== 20) throw new Error(`${cores('a')} and ${cores('b')}`);
        });
        at(now + 100 * HOUR);
        return cores('a') === said.a && cores('b') === said.b && quota.refresh().drift.length === 0;
      },
    ),
    { numRuns: 300 },
  );
  t.end();
});
