import fc from 'fast-check';
import { test } from 'tap';
import { Quota, formatAmount, type Decision, type Hard } from '../../../../src/quota/index.js';

function admit(quota: Quota, name: string, group: string, count: number): Decision {
  return quota.admit({ workload: { kind: 'Job', name }, group, podSets: [{ count, limits: { cpu: 1 } }] });
}

const room = (quota: Quota, group: string): string =>
  formatAmount('limits.cpu', quota.status(group)?.room.get('limits.cpu') ?? -1n);

/** root 10 with a 6 and b 4, all elastic. */
function family(
  limits: {
    readonly a?: Partial<Record<'borrow' | 'lend', Hard>>;
    readonly b?: Partial<Record<'borrow' | 'lend', Hard>>;
  } = {},
): Quota {
  const quota = new Quota();
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  quota.createGroup({ name: 'a', parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 6 }, ...limits.a });
  quota.createGroup({ name: 'b', parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 4 }, ...limits.b });
  return quota;
}

test('a group uses what its siblings do not use, up to the sum of all limits', (t) => {
  const quota = family();
  t.equal(admit(quota, 'x', 'a', 9).code, 'OK');
  t.equal(admit(quota, 'y', 'b', 2).code, 'QuotaExceeded');
  t.equal(admit(quota, 'y', 'b', 1).code, 'OK');
  t.equal(room(quota, 'a'), '0');
  t.equal(room(quota, 'root'), '0', 'the parent lends what it has itself');
  t.end();
});

test('quota that a group does not lend stays in the group', (t) => {
  const quota = family({ b: { lend: { 'limits.cpu': 1 } } });
  t.equal(room(quota, 'a'), '7');
  t.equal(admit(quota, 'x', 'a', 8).hints.maxReplicas, 7);
  t.equal(admit(quota, 'x', 'a', 7).code, 'OK');
  t.equal(admit(quota, 'y', 'b', 3).code, 'OK', 'its own three are there');
  t.equal(admit(quota, 'z', 'b', 1).code, 'QuotaExceeded', 'the fourth is lent');
  t.end();
});

test('a group borrows no more than its borrowing limit', (t) => {
  const quota = family({ a: { borrow: { 'limits.cpu': 2 } } });
  t.equal(room(quota, 'a'), '8');
  t.equal(admit(quota, 'x', 'a', 9).code, 'QuotaExceeded');
  t.equal(admit(quota, 'x', 'a', 8).code, 'OK');
  t.end();
});

test('lent quota cannot be given to a child of another group', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 10 } });
  quota.createGroup({ name: 'a', parent: 'root', mode: 'elastic', hard: { 'limits.cpu': 4 } });
  admit(quota, 'x', 'a', 9);
  const decision = quota.createGroup({ name: 'c', parent: 'root', hard: { 'limits.cpu': 6 } });
  t.equal(decision.code, 'ParentExceeded');
  t.equal(formatAmount('limits.cpu', decision.violations[0]?.short ?? 0n), '5');
  t.equal(quota.createGroup({ name: 'c', parent: 'root', hard: { 'limits.cpu': 1 } }).code, 'OK');
  t.end();
});

test('quota is borrowed through several levels and returned in the same order', (t) => {
  const quota = new Quota();
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 12 } });
  quota.createGroup({
    name: 'm',
    parent: 'root',
    mode: 'elastic',
    hard: { 'limits.cpu': 6 },
    borrow: { 'limits.cpu': 3 },
  });
  quota.createGroup({ name: 'l', parent: 'm', mode: 'elastic', hard: { 'limits.cpu': 2 } });
  t.equal(room(quota, 'l'), '9', 'its 2, the 4 of its parent, and 3 that this may borrow');
  admit(quota, 'x', 'l', 9);
  t.equal(room(quota, 'root'), '3');
  t.same(admit(quota, 'y', 'l', 1).path, ['l', 'm', 'root']);
  quota.scale({ kind: 'Job', name: 'x' }, 5);
  t.equal(room(quota, 'root'), '7');
  quota.release({ kind: 'Job', name: 'x' });
  t.equal(room(quota, 'root'), '12');
  t.end();
});

test('a group that changes to carved mode keeps its usage and borrows nothing more', (t) => {
  const quota = family();
  admit(quota, 'x', 'a', 9);
  t.equal(quota.updateGroup({ name: 'a', mode: 'carved' }).warnings[0]?.code, 'OverQuota');
  t.equal(room(quota, 'a'), '-3');
  t.equal(room(quota, 'b'), '4', 'what was borrowed is free again');
  t.equal(admit(quota, 'x', 'a', 8).code, 'OK', 'shrinking is allowed');
  t.end();
});

test('an elastic decision reads each key once per level, a decision in carved mode once', (t) => {
  const quota = new Quota();
  const depth = 8;
  for (let level = 0; level < depth; level++) {
    quota.createGroup({
      name: `e${level}`,
      parent: level === 0 ? '' : `e${level - 1}`,
      mode: level === 0 ? 'carved' : 'elastic',
      hard: { 'limits.cpu': 10, 'limits.memory': 10 },
    });
    quota.createGroup({
      name: `c${level}`,
      parent: level === 0 ? '' : `c${level - 1}`,
      hard: { 'limits.cpu': 10, 'limits.memory': 10 },
    });
  }
  const keys = 2;
  const work = (group: string, name: string) => {
    const { keysTested, keysCharged } = quota.counters;
    quota.admit({ workload: { kind: 'Job', name }, group, podSets: [{ count: 1, limits: { cpu: 1, memory: 1 } }] });
    return { tested: quota.counters.keysTested - keysTested, charged: quota.counters.keysCharged - keysCharged };
  };
  t.same(work('e7', 'x'), { tested: depth * keys, charged: depth * keys });
  t.same(work('c7', 'y'), { tested: keys, charged: keys });
  t.end();
});

test('in an elastic tree the total usage never exceeds the limits of the roots', (t) => {
  const operation = fc.record({
    workload: fc.nat(5),
    group: fc.constantFrom('root', 'a', 'b', 'a1', 'a2'),
    count: fc.nat(9),
  });
  const limit = fc.option(fc.nat(5));
  fc.assert(
    fc.property(
      fc.array(operation, { maxLength: 60 }),
      fc.array(limit, { minLength: 8, maxLength: 8 }),
      (operations, limits) => {
        const quota = new Quota();
        const group = (name: string, parent: string, size: number, at: number) =>
          quota.createGroup({
            name,
            parent,
            mode: 'elastic',
            hard: { 'limits.cpu': size },
            ...(limits[at] === null ? {} : { lend: { 'limits.cpu': limits[at] ?? 0 } }),
            ...(limits[at + 4] === null ? {} : { borrow: { 'limits.cpu': limits[at + 4] ?? 0 } }),
          });
        quota.createGroup({ name: 'root', hard: { 'limits.cpu': 20 } });
        group('a', 'root', 10, 0);
        group('b', 'root', 6, 1);
        group('a1', 'a', 4, 2);
        group('a2', 'a', 3, 3);
        for (const { workload, group: name, count } of operations) admit(quota, `w${workload}`, name, count);
        const total = ['root', 'a', 'b', 'a1', 'a2'].reduce(
          (sum, name) => sum + (quota.status(name)?.selfUsed.get('limits.cpu') ?? 0n),
          0n,
        );
        const rooms = ['root', 'a', 'b', 'a1', 'a2'].every(
          (name) => (quota.status(name)?.room.get('limits.cpu') ?? -1n) >= 0n,
        );
        return total <= 20_000n && rooms;
      },
    ),
    { numRuns: 300 },
  );
  t.end();
});
