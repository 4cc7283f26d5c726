import { test } from 'tap';
import { generator } from '../../generator.js';
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
  const deep = { name: 'front', parent: 'web', hard: cpu(50) };
  t.match(areaProblems(deep, [area, { name: 'web', parent: 'app' }]), [/exceeds hard of the area app/], 'at any depth');
  t.match(areaProblems({ name: 'app', hard: cpu(49) }, [deep, { name: 'web', parent: 'app' }]), [
    /below that of its consumer front/,
  ]);
  const held = { name: 'front', parent: 'web', reserved: cpu(21) };
  t.match(areaProblems(held, [area, { name: 'web', parent: 'app' }]), [/the consumers of app reserve more/]);
  t.match(areaProblems({ name: 'app', parent: 'app' }, []), [/cannot be its own area/]);
  t.match(areaProblems({ name: 'app', parent: 'web' }, [{ name: 'web', parent: 'app' }]), [/cannot be above itself/]);
  t.end();
});

test('areas may have any depth; each divides its share among its members', (t) => {
  const tree = [
    asks('company', 0, { request: none, hard: cpu(80) }),
    asks('app', 0, { parent: 'company', weight: 3, request: none }),
    asks('data', 100, { parent: 'company' }),
    asks('web', 0, { parent: 'app', request: none }),
    asks('shop', 100, { parent: 'app' }),
    asks('front', 100, { parent: 'web', weight: 2 }),
    asks('back', 100, { parent: 'web' }),
    asks('guest', 20),
  ];
  t.match(deserved(tree, 100), { company: 80, app: 60, data: 20, web: 30, shop: 30, front: 20, back: 10, guest: 20 });
  const reserved = tree.map((each) => (each.name === 'back' ? { ...each, reserved: cpu(50) } : each));
  t.match(deserved(reserved, 100), { data: 20, shop: 10, front: 0, back: 50 }, 'a reservation holds at every level');
  const idle = tree.map((each) => (each.parent === 'web' ? { ...each, request: none } : each));
  t.match(
    deserved(idle, 100),
    { data: 20, shop: 60, front: 0, back: 0 },
    'unrequested shares stay in the nearest area',
  );
  const circle = [asks('a', 5, { parent: 'b' }), asks('b', 5, { parent: 'a' }), asks('c', 5, { parent: 'b' })];
  t.match(deserved(circle, 15), { a: 5, c: 5 }, 'a circle, which the webhook refuses, loses no consumer');
  t.end();
});

test('in random trees shares keep within capacity, limits and reservations at every level, and waste nothing', (t) => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = generator(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const names = Array.from({ length: 2 + below(12) }, (_, index) => `n${index}`);
    const requests = names.map((name, index) => {
      const parent = index === 0 || below(3) === 0 ? '' : (names[below(index)] ?? '');
      return asks(name, below(60), {
        parent,
        weight: 1 + below(4),
        ...(below(3) === 0 ? { hard: cpu(10 + below(50)) } : {}),
      });
    });
    const capacity = 20 + below(200);
    const { of } = sharesByArea(requests, cpu(capacity));
    const share = (name: string): number => of.get(name)?.get('cpu') ?? 0;
    const isArea = (name: string): boolean => requests.some(({ parent }) => parent === name);
    const tops = requests.filter(({ parent }) => parent === '');
    t.ok(
      tops.every(({ name, hard }) => isArea(name) || share(name) <= (hard?.get('cpu') ?? Infinity)),
      `seed ${seed}`,
    );
    const leaves = requests.filter(({ name }) => !isArea(name));
    for (const { name, request, hard } of leaves)
      if (share(name) > Math.min(request.get('cpu') ?? 0, hard?.get('cpu') ?? Infinity))
        t.fail(`seed ${seed}: ${name}`);
    const given = requests.reduce((sum, { name }) => sum + share(name), 0);
    if (given > capacity) t.fail(`seed ${seed}: ${given} of ${capacity}`);
    const asked = requests.reduce((sum, { request }) => sum + (request.get('cpu') ?? 0), 0);
    if (requests.every(({ hard }) => hard === undefined) && given < Math.min(asked, capacity) - names.length)
      t.fail(`seed ${seed}: ${given} of ${Math.min(asked, capacity)}`);
  }
  t.end();
});
