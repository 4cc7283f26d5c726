import { test } from 'tap';
import { fittingShapes, PLACEMENT, type Place, type Shape } from '../../../src/quota/index.js';
import { generator } from '../../generator.js';

const shape = (name: string, uses: Readonly<Record<string, number>>): Shape => ({
  name,
  uses: new Map(Object.entries(uses)),
  count: 1,
});
const place = (name: string, free: Readonly<Record<string, number>>, more: Partial<Place> = {}): Place => ({
  name,
  free: new Map(Object.entries(free)),
  ...more,
});

test('a shape fits as often as its scarcest resource allows, and that resource blocks the next', (t) => {
  const places = [place('n1', { cpu: 9, gpu: 2 }), place('n2', { cpu: 3, gpu: 8 }), place('n3', { cpu: -1, gpu: 8 })];
  const [found] = fittingShapes(places, [shape('s', { cpu: 2, gpu: 1 })]);
  t.equal(found?.fits, 3);
  t.same(
    [...(found?.where ?? [])],
    [
      ['n1', 2],
      ['n2', 1],
    ],
  );
  t.same(
    [...(found?.blockedBy ?? [])],
    [
      ['gpu', 1],
      ['cpu', 2],
    ],
  );
  t.end();
});

test('where the sums suffice and the pieces do not, the placement blocks', (t) => {
  // Two GPUs with 50 of 100 cores free each.
  const halves: Partial<Place> = {
    copies: ({ uses }, limit) => Math.min(limit, 2 * Math.floor(50 / (uses.get('core') ?? 1))),
  };
  const [small, large] = fittingShapes(
    [place('n1', { core: 100 }, halves)],
    [shape('a', { core: 30 }), shape('b', { core: 60 })],
  );
  t.match([small?.fits, large?.fits], [2, 0]);
  t.same([...(large?.blockedBy ?? [])], [[PLACEMENT, 1]]);
  t.same([...(small?.blockedBy ?? [])], [[PLACEMENT, 1]], '40 cores are left, 20 on each GPU');
  t.end();
});

test('in random places the number equals that of adding one after the other', (t) => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = generator(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const most = below(9);
    const given = place(
      'n1',
      { a: below(40), b: below(40) },
      below(2) === 0 ? { copies: (_, limit) => Math.min(limit, most) } : {},
    );
    const asked = shape('s', { a: 1 + below(6), b: below(6) });
    let copies = 0;
    const fits = (count: number): boolean =>
      [...asked.uses].every(([key, amount]) => amount * count <= (given.free.get(key) ?? 0)) &&
      (given.copies?.(asked, count) ?? count) === count;
    while (fits(copies + 1)) copies++;
    const [found] = fittingShapes([given], [asked]);
    if (found?.fits !== copies) t.fail(`seed ${seed}: ${found?.fits}, expected ${copies}`);
    if (found?.blockedBy.size === 0) t.fail(`seed ${seed}: nothing blocks`);
  }
  t.end();
});
