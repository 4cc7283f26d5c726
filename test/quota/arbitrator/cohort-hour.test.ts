import { test } from 'tap';
import { cohortSituations, sharesByArea, type ArbitratedGroup } from '../../../src/quota/index.js';
import { generator } from '../../generator.js';
import { SimulatedQuota } from './simulated-quota.js';
import { cases } from '../../cases.js';

const CPU = 'limits.cpu';
const SITUATIONS = cases(5, 270);
const STEP_MS = 15_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A tree of up to three levels whose groups share 100,000 to 400,000 thousandths of a core. */
function randomGroups(random: () => number): readonly ArbitratedGroup[] {
  const below = (limit: number): number => Math.floor(random() * limit);
  const capacity = (1 + below(4)) * 100_000;
  const groups: ArbitratedGroup[] = [
    { name: 'root', parent: '', isElastic: false, hard: new Map([[CPU, capacity]]), reclaim: 'FairShare' },
  ];
  const divide = (parent: string, amount: number, depth: number): void => {
    const count = 2 + below(3);
    for (let index = 0; index < count; index++) {
      const name = `${parent === 'root' ? 'g' : parent}${index}`;
      const share = Math.floor((amount * (random() * 0.8)) / count);
      const isArea = depth === 1 && below(4) === 0;
      groups.push({
        name,
        parent,
        isElastic: true,
        hard: new Map([[CPU, share]]),
        weight: 1 + below(4),
        reclaim: 'FairShare',
        ...(!isArea && below(5) === 0 ? { lend: new Map([[CPU, Math.floor(share * random())]]) } : {}),
        ...(!isArea && below(6) === 0 ? { borrow: new Map([[CPU, Math.floor(amount * random() * 0.4)]]) } : {}),
      });
      if (isArea) divide(name, share, depth + 1);
    }
  };
  divide('root', capacity, 1);
  return groups;
}

test(`in ${SITUATIONS} hours of groups that borrow, every eviction leads to an admission, and shares follow the weights`, (t) => {
  let [evictions, starts, worst, compared] = [0, 0, 0, 0];
  for (let seed = 1; seed <= SITUATIONS; seed++) {
    const random = generator(seed * 7919 + 3);
    const below = (limit: number): number => Math.floor(random() * limit);
    const groups = randomGroups(random);
    const capacity = groups[0]?.hard.get(CPU) ?? 0;
    const leaves = groups.filter(({ name }) => !groups.some(({ parent }) => parent === name));
    const world = new SimulatedQuota({
      groups,
      random,
      policy: { graceMs: below(2) * 30_000, cooldownMs: below(2) * 30_000 },
    });
    const fill = (group: string): void => {
      while (world.waiting(group) < 6) {
        const size = new Map([[CPU, Math.ceil(capacity * (1 + below(4)) * 0.006)]]);
        world.add(group, size, (10 + below(30)) * MINUTE_MS, (5 + below(25)) * 1000);
      }
    };
    const first = leaves[below(leaves.length)]?.name ?? '';
    const sums = new Map<string, number>();
    let steps = 0;
    for (; world.now < HOUR_MS;) {
      // One group has everything that it may borrow before the others come.
      if (world.now < 5 * MINUTE_MS) fill(first);
      else for (const { name } of leaves) fill(name);
      world.pass(STEP_MS);
      if (world.now < 15 * MINUTE_MS) continue;
      steps++;
      for (const { name } of leaves) sums.set(name, (sums.get(name) ?? 0) + (world.usage(name).get(CPU) ?? 0));
    }
    const vain = world.carriedOut.filter(({ admittedAt, at }) => admittedAt === null && at < HOUR_MS - 3 * MINUTE_MS);
    if (vain.length > 0) t.fail(`seed ${seed}: ${vain.map(({ start, at }) => `${start.pod} at ${at}`).join()}`);
    evictions += world.carriedOut.reduce((sum, { start }) => sum + start.victims.length, 0);
    starts += world.carriedOut.length;
    const ideal = idealShares(groups, capacity);
    for (const { name } of leaves) {
      const difference = Math.abs((sums.get(name) ?? 0) / steps - (ideal.get(name) ?? 0)) / capacity;
      worst = Math.max(worst, difference);
      compared++;
      if (difference > 0.05)
        t.fail(`seed ${seed}: ${name} differs by ${(difference * 100).toFixed(1)} % of the cohort`);
    }
  }
  t.ok(starts > SITUATIONS, `${evictions} evictions for ${starts} starts`);
  t.comment(`${compared} shares, the worst ${(worst * 100).toFixed(2)} % of the cohort from its weight`);
  t.end();
});

/** The shares when every group asks for the whole cohort. */
function idealShares(groups: readonly ArbitratedGroup[], capacity: number): ReadonlyMap<string, number> {
  const uses = new Map([[CPU, capacity]]);
  const leaves = groups.filter(({ name }) => !groups.some(({ parent }) => parent === name));
  const [situation] = cohortSituations({
    now: 0,
    groups,
    workloads: [],
    refused: leaves.map(({ name }) => ({ id: name, consumer: name, uses, since: 0 })),
    disruptions: new Map(),
  }).values();
  const requests = (situation?.consumers ?? []).map((spec) => ({
    ...spec,
    request: situation?.pending.get(spec.name) ?? new Map<string, number>(),
  }));
  return new Map([...sharesByArea(requests, uses).of].map(([name, share]) => [name, share.get(CPU) ?? 0]));
}
