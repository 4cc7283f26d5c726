import { test } from 'tap';
import { areaProblems, sharesByArea, type AreaShareRequest } from '../../../src/quota/arbitrator/index.js';

const cpu = (amount: number): ReadonlyMap<string, number> => new Map([['cpu', amount]]);
const asks = (name: string, amount: number, more: Partial<AreaShareRequest> = {}): AreaShareRequest => ({
  name,
  request: cpu(amount),
  ...more,
});
const none = new Map<string, number>();

function deserved(requests: readonly AreaShareRequest[], capacity: number): Readonly<Record<string, number>> {
  const { of } = sharesByArea(requests, cpu(capacity));
  return Object.fromEntries([...of].map(([name, share]) => [name, share.get('cpu') ?? 0]));
}

test('a cluster is divided among areas first, then among the namespaces of each', (t) => {
  const areas = [
    asks('app', 0, { weight: 40, request: none }),
    asks('data', 0, { weight: 60, request: none }),
    asks('web', 100, { parent: 'app' }),
    asks('shop', 100, { parent: 'app' }),
    asks('lake', 100, { parent: 'data' }),
  ];
  t.match(deserved(areas, 100), { app: 40, data: 60, web: 20, shop: 20, lake: 60 });
  const idle = areas.map((each) => (each.name === 'shop' ? { ...each, request: none } : each));
  t.match(deserved(idle, 100), { web: 40, lake: 60 }, 'unrequested shares go to other members of the area first');
  const quiet = areas.map((each) => (each.parent === 'app' ? { ...each, request: cpu(5) } : each));
  t.match(deserved(quiet, 100), { web: 5, shop: 5, lake: 90 }, 'then to other areas');
  t.match(deserved([asks('a', 10), asks('b', 10)], 10), { a: 5, b: 5 }, 'without areas nothing changes');
  t.end();
});

test('limits and reservations of an area apply to its members together', (t) => {
  t.match(
    deserved(
      [asks('app', 0, { request: none, hard: cpu(30) }), asks('web', 100, { parent: 'app' }), asks('x', 20)],
      100,
    ),
    { web: 30, x: 20 },
  );
  t.match(
    deserved([asks('web', 0, { parent: 'app', request: none, reserved: cpu(40) }), asks('x', 100)], 100),
    { web: 40, x: 60 },
    'reservations count in an area without a Consumer, too',
  );
  t.end();
});

test('limits and reservations of a consumer must not exceed those of its area', (t) => {
  const area = { name: 'app', hard: cpu(40), reserved: cpu(20) };
  const other = { name: 'shop', parent: 'app', reserved: cpu(15) };
  const problems = (hard: number, reserved: number): readonly string[] =>
    areaProblems({ name: 'web', parent: 'app', hard: cpu(hard), reserved: cpu(reserved) }, [area, other]);
  t.same(problems(40, 5), []);
  t.match(problems(41, 5), [/hard of cpu exceeds/]);
  t.match(problems(40, 6), [/the consumers of app reserve more cpu/]);
  t.match(areaProblems({ name: 'app', hard: cpu(10) }, [{ name: 'web', parent: 'app', hard: cpu(20) }]), [
    /below that of/,
  ]);
  t.match(areaProblems({ name: 'a', parent: 'web' }, [{ name: 'web', parent: 'app' }]), [/areas cannot be nested/]);
  t.end();
});
