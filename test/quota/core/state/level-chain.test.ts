import fc from 'fast-check';
import { test } from 'tap';
import { AmountBlocks } from '../../../../src/quota/core/state/amount-blocks.js';
import { minus, type Amount } from '../../../../src/manifests/amount.js';
import { bareGroup, type Chain, type Group } from '../../../../src/quota/core/state/group.js';
import { LevelChain } from '../../../../src/quota/core/state/level-chain.js';
import { LayoutTable } from '../../../../src/quota/core/amounts/layout.js';

const layout = new LayoutTable().layoutOf(['limits.cpu', 'limits.memory', 'pods']);
const amount = fc.oneof(
  { weight: 12, arbitrary: fc.nat(20) },
  { weight: 1, arbitrary: fc.constantFrom<Amount>(Number.MAX_SAFE_INTEGER, 2n ** 53n, 2n ** 62n) },
);
const limit = fc.oneof(fc.constant(Infinity), amount);
// A drifted counter can be negative until the next refresh.
const used = fc.oneof({ weight: 12, arbitrary: amount }, { weight: 1, arbitrary: fc.constant(-3) });

/** Groups from the first to the last of a chain, in one block. */
const chains = fc
  .array(fc.record({ hard: amount, used, spilled: amount, lend: limit, borrow: limit }), { minLength: 1, maxLength: 5 })
  .map((specs): readonly Group[] => {
    const blocks = new AmountBlocks();
    return specs.map((spec, level) => {
      const group = bareGroup(`g${level}`, 1, `g${level + 1}`, specs.length - level, layout, blocks);
      group.amounts.setHard(1, spec.hard);
      group.amounts.setSelfUsed(1, spec.used);
      group.amounts.addSpilled(1, spec.spilled);
      for (const slot of [0, 1, 2]) {
        group.amounts.setLimits(slot, slot === 1 ? spec.lend : Infinity, slot === 1 ? spec.borrow : Infinity);
        group.amounts.derive(slot, true);
      }
      return group;
    });
  });

function chainOf(groups: readonly Group[]): Chain {
  return groups.toReversed().reduce<Chain | null>((above, group) => new LevelChain(group, above, 0), null) as Chain;
}

test('a walk in plain numbers along a chain gives the exact room or none', (t) => {
  let plain = 0;
  fc.assert(
    fc.property(chains, (groups) => {
      const room = chainOf(groups).fastRoom(1);
      if (!Number.isNaN(room)) plain++;
      const [top, ...below] = groups.toReversed() as [Group, ...Group[]];
      const exact = below.reduce((above, { amounts }) => amounts.roomBelow(1, above), top.amounts.room(1));
      return Number.isNaN(room) || room === exact;
    }),
    { numRuns: 3000 },
  );
  t.ok(plain > 300, `${plain} of 3000 walks were plain`);
  t.end();
});

test('a charge along a chain changes the group and what spills', (t) => {
  fc.assert(
    fc.property(chains, amount, fc.boolean(), (groups, size, isRelease) => {
      const change = isRelease ? minus(0, size) : size;
      const copies = groups.map(({ amounts }) => amounts.copy());
      const chain = chainOf(groups);
      const spill = chain.charge(1, change);
      const above = chain.above?.chargeSpilled(1, spill) ?? 0;
      return (
        spill === copies[0]?.charge(1, change) &&
        above === (copies[1]?.chargeSpilled(1, spill) ?? 0) &&
        groups.every(({ amounts }, level) => amounts.subtreeUsage(1) === copies[level]?.subtreeUsage(1)) &&
        groups[0]?.amounts.selfUsed(1) === copies[0]?.selfUsed(1) &&
        groups.every(({ amounts }) => [0, 2].every((slot) => amounts.subtreeUsage(slot) === 0))
      );
    }),
    { numRuns: 2000 },
  );
  t.end();
});
