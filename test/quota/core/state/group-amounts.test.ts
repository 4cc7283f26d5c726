import fc from 'fast-check';
import { test } from 'tap';
import { maxOf, minus, plus, type Amount } from '../../../../src/manifests/amount.js';
import { GroupAmounts, roomBelowAt } from '../../../../src/quota/core/state/group-amounts.js';

const SLOTS = 3;
const LIMIT = Number.MAX_SAFE_INTEGER;
const amount = fc.oneof(
  { weight: 12, arbitrary: fc.nat(20) },
  { weight: 1, arbitrary: fc.constantFrom(LIMIT, LIMIT - 1, Math.floor(LIMIT / 4), Math.floor(LIMIT / 2)) },
  { weight: 1, arbitrary: fc.constantFrom<Amount>(2n ** 53n, 2n ** 62n) },
);
const limit = fc.oneof(amount, fc.constant(Infinity));

interface Given {
  readonly amounts: GroupAmounts;
  readonly above: Amount;
}

const given = fc
  .record({ hard: amount, used: amount, spilled: amount, childSum: amount, lend: limit, borrow: limit, above: amount })
  .chain((each) => fc.boolean().map((isElastic) => ({ ...each, isElastic })))
  .map(({ hard, used, spilled, childSum, lend, borrow, above, isElastic }): Given => {
    // A neighbour on each side shows a wrong position.
    const amounts = new GroupAmounts(SLOTS);
    for (const slot of [0, 2]) amounts.setSelfUsed(slot, 7);
    amounts.setHard(1, hard);
    amounts.setSelfUsed(1, used);
    amounts.addSpilled(1, spilled);
    amounts.addChildSum(1, childSum);
    amounts.setLimits(1, lend, borrow);
    amounts.derive(1, isElastic);
    return { amounts, above };
  });

test('a walk in plain numbers gives the exact room or none', (t) => {
  let plain = 0;
  fc.assert(
    fc.property(given, ({ amounts, above }) => {
      const room = amounts.fastRoom(1);
      if (!Number.isNaN(room) && room !== amounts.room(1)) return false;
      if (typeof above === 'bigint') return true;
      const below = roomBelowAt(amounts.values, amounts.start + 1, SLOTS, above);
      if (!Number.isNaN(below)) plain++;
      return Number.isNaN(below) || below === amounts.roomBelow(1, above);
    }),
    { numRuns: 3000 },
  );
  t.ok(plain > 300, `${plain} of 3000 walks were plain`);
  const empty = new GroupAmounts(1);
  t.ok(Number.isNaN(roomBelowAt(empty.values, empty.start, 1, NaN)), 'no room above is no room below');
  t.end();
});

test('a charge adds the exact usage and returns the exact change of what spills', (t) => {
  const spills = (amounts: GroupAmounts): Amount => maxOf(0, minus(amounts.subtreeUsage(1), amounts.localQuota(1)));
  fc.assert(
    fc.property(given, amount, fc.boolean(), fc.boolean(), ({ amounts }, size, isOwn, isRelease) => {
      const change = isRelease ? minus(0, size) : size;
      const [before, used, spilled] = [spills(amounts), amounts.selfUsed(1), amounts.spilled(1)];
      const more = isOwn ? amounts.charge(1, change) : amounts.chargeSpilled(1, change);
      return (
        amounts.selfUsed(1) === (isOwn ? plus(used, change) : used) &&
        amounts.spilled(1) === (isOwn ? spilled : plus(spilled, change)) &&
        plus(before, more) === spills(amounts) &&
        amounts.selfUsed(0) === 7 &&
        amounts.selfUsed(2) === 7
      );
    }),
    { numRuns: 3000 },
  );
  t.end();
});

test('a copy does not change with its original', (t) => {
  const amounts = new GroupAmounts(1);
  amounts.setHard(0, 5);
  const copy = amounts.copy();
  amounts.addHard(0, 2n ** 60n);
  t.equal(copy.hard(0), 5);
  t.equal(amounts.hard(0), 2n ** 60n + 5n);
  t.end();
});
