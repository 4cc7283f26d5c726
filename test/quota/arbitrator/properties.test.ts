import fc from 'fast-check';
import { test } from 'tap';
import {
  arbitrate,
  fairShares,
  NO_MEMORY,
  planEvictions,
  type ShareRequest,
  type Quantities,
  type RunningPod,
} from '../../../src/quota/arbitrator/index.js';
import { bisected } from './bisected.js';
import { cases } from '../../cases.js';

const RESOURCES = ['cpu', 'memory', 'gpu'];
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

const quantities = (max: number): fc.Arbitrary<Quantities> =>
  fc
    .array(fc.option(fc.nat(max)), { minLength: 3, maxLength: 3 })
    .map(
      (amounts) =>
        new Map(amounts.flatMap((amount, r) => (amount === null ? [] : [[RESOURCES[r] as string, amount] as const]))),
    );

const capacities = fc
  .array(fc.integer({ min: 0, max: 1000 }), { minLength: 3, maxLength: 3 })
  .map((amounts): Quantities => new Map(amounts.map((amount, r) => [RESOURCES[r] as string, amount])));

const claimsOf = (max: number): fc.Arbitrary<readonly ShareRequest[]> =>
  fc
    .array(
      fc.record({
        request: quantities(max),
        hard: fc.option(quantities(max), { nil: undefined }),
        reserved: fc.option(quantities(max / 4), { nil: undefined }),
        weight: fc.constantFrom(1, 1, 2, 5),
        isSystem: fc.constantFrom(false, false, false, false, true),
      }),
      { maxLength: NAMES.length },
    )
    .map((claims) => claims.map((claim, at) => ({ ...claim, name: NAMES[at] as string })));

const at = (amounts: Quantities | undefined, resource: string): number => amounts?.get(resource) ?? 0;

test('no share exceeds the capacity, hard, or the larger of request and reservation', (t) => {
  fc.assert(
    fc.property(claimsOf(800), capacities, fc.boolean(), (claims, capacity, lendReserved) => {
      const { of } = fairShares(claims, capacity, { lendReserved });
      return RESOURCES.every((resource) => {
        const sum = claims.reduce((all, { name }) => all + at(of.get(name), resource), 0);
        return (
          sum <= at(capacity, resource) &&
          claims.every(({ name, hard, reserved, request }) => {
            const share = at(of.get(name), resource);
            return (
              Number.isSafeInteger(share) &&
              share >= 0 &&
              share <= (hard?.get(resource) ?? Infinity) &&
              share <= Math.max(at(request, resource), at(reserved, resource))
            );
          })
        );
      });
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.end();
});

test('every consumer gets its reservation if the capacity suffices, else a proportional part', (t) => {
  fc.assert(
    fc.property(claimsOf(800), capacities, (all, capacity) => {
      const claims = all.filter(({ isSystem }) => !isSystem);
      const { of, notGuaranteed } = fairShares(claims, capacity);
      return RESOURCES.every((resource) => {
        const floor = ({ reserved, hard }: ShareRequest): number =>
          Math.min(at(reserved, resource), hard?.get(resource) ?? Infinity);
        const sum = claims.reduce((total, claim) => total + floor(claim), 0);
        const limit = at(capacity, resource);
        if (sum > limit && limit > 0 && !notGuaranteed.includes(resource)) return false;
        const part = sum > limit ? limit / sum : 1;
        return claims.every((claim) => at(of.get(claim.name), resource) >= Math.floor(floor(claim) * part));
      });
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.end();
});

test('a request is met while all its resources are available', (t) => {
  fc.assert(
    fc.property(claimsOf(800), capacities, (claims, capacity) => {
      const { of } = fairShares(claims, capacity);
      const free = (resource: string): number =>
        at(capacity, resource) - claims.reduce((sum, { name }) => sum + at(of.get(name), resource), 0);
      return claims.every(({ name, request, hard }) => {
        const wants = RESOURCES.filter(
          (resource) =>
            at(capacity, resource) > 0 && Math.min(at(request, resource), hard?.get(resource) ?? Infinity) > 0,
        );
        const isMet = wants.every(
          (resource) =>
            at(of.get(name), resource) + 1 >= Math.min(at(request, resource), hard?.get(resource) ?? Infinity),
        );
        // Rounding leaves less than one unit per consumer.
        return isMet || wants.some((resource) => free(resource) <= claims.length);
      });
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.end();
});

test('progressive filling equals a search for each level', (t) => {
  fc.assert(
    fc.property(claimsOf(800), capacities, (all, capacity) => {
      const claims = all.filter(({ isSystem }) => !isSystem);
      const { of, notGuaranteed } = fairShares(claims, capacity);
      if (notGuaranteed.length > 0) return true;
      const searched = bisected(claims, capacity);
      return claims.every(({ name }, who) =>
        RESOURCES.every((resource, r) => Math.abs(at(of.get(name), resource) - (searched[who]?.[r] ?? 0)) <= 1.01),
      );
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.end();
});

test('the order of the consumers changes nothing', (t) => {
  fc.assert(
    fc.property(claimsOf(800), capacities, (claims, capacity) => {
      const [there, back] = [fairShares(claims, capacity), fairShares([...claims].reverse(), capacity)];
      // System consumers are served in their order.
      if (claims.filter(({ isSystem }) => isSystem).length > 1) return true;
      return claims.every(({ name }) =>
        RESOURCES.every(
          (resource) => Math.abs(at(there.of.get(name), resource) - at(back.of.get(name), resource)) <= 1,
        ),
      );
    }),
    { numRuns: cases(200, 3_000) },
  );
  t.end();
});

const runningPods = fc
  .array(
    fc.record({
      consumer: fc.constantFrom(...NAMES),
      uses: quantities(200),
      priority: fc.nat(3),
      startedAt: fc.option(fc.nat(50)),
      isProtected: fc.constantFrom(false, false, false, true),
      isLeaving: fc.constantFrom(false, false, false, true),
      budgets: fc.subarray(['x', 'y']),
    }),
    { maxLength: 25 },
  )
  .map((pods) => pods.map((pod, number): RunningPod => ({ ...pod, id: `p${number}` })));

const situations = fc.record({
  now: fc.constant(0),
  capacity: capacities,
  pods: runningPods,
  pending: fc.dictionary(fc.constantFrom(...NAMES), quantities(400)).map((pending) => new Map(Object.entries(pending))),
  disruptions: fc.dictionary(fc.constantFrom('x', 'y'), fc.nat(3)).map((budgets) => new Map(Object.entries(budgets))),
  consumers: claimsOf(800).map((claims) =>
    claims.map(({ name, hard, reserved, weight }) => ({ name, hard, reserved, weight })),
  ),
});

test('a plan evicts only permitted pods, respects budgets and reservations, and every victim has a beneficiary', (t) => {
  let evictions = 0;
  fc.assert(
    fc.property(situations, (situation) => {
      const plan = arbitrate(situation, NO_MEMORY, { graceMs: 0 });
      const allowed = new Map(situation.disruptions);
      const usage = new Map(plan.allocations.map((each) => [each.name, { ...each, left: new Map(each.used) }]));
      evictions += plan.evictions.length;
      return plan.evictions.every(({ pod: id, consumer, resource: goesFor, beneficiaries }) => {
        const victim = situation.pods.find((each) => each.id === id);
        const from = usage.get(consumer);
        if (
          victim === undefined ||
          from === undefined ||
          victim.consumer !== consumer ||
          victim.isProtected === true ||
          victim.isLeaving === true
        )
          return false;
        const waits =
          beneficiaries.length > 0 &&
          beneficiaries.every(
            (name) =>
              name !== consumer &&
              at(victim.uses, goesFor) > 0 &&
              at(situation.pending.get(name), goesFor) > 0 &&
              at(from.left, goesFor) > at(from.deserved, goesFor),
          );
        for (const budget of victim.budgets ?? []) allowed.set(budget, (allowed.get(budget) ?? 0) - 1);
        for (const [resource, amount] of victim.uses) from.left.set(resource, at(from.left, resource) - amount);
        return (
          waits &&
          [...allowed.values()].every((left) => left >= 0) &&
          RESOURCES.every(
            (resource) => at(victim.uses, resource) === 0 || at(from.left, resource) >= at(from.reserved, resource),
          )
        );
      });
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.ok(evictions > cases(50, 1_000), `${evictions} evictions`);
  t.end();
});

test('every victim of a plan is needed', (t) => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { evictions, allocations } = arbitrate(situation, NO_MEMORY, { graceMs: 0 });
      const used = new Map(
        RESOURCES.map((resource) => [resource, allocations.reduce((sum, each) => sum + at(each.used, resource), 0)]),
      );
      const wants = RESOURCES.map((resource) => {
        const lack = allocations.reduce(
          (sum, each) =>
            sum +
            Math.max(
              0,
              Math.min(at(each.deserved, resource), at(each.used, resource) + at(each.pending, resource)) -
                at(each.used, resource),
            ),
          0,
        );
        return Math.max(0, lack - (at(situation.capacity, resource) - at(used, resource)));
      });
      const freed = (without: string): readonly number[] =>
        RESOURCES.map((resource) =>
          evictions
            .filter(({ pod }) => pod !== without)
            .reduce((sum, { pod: id }) => sum + at(situation.pods.find((each) => each.id === id)?.uses, resource), 0),
        );
      return evictions.every(({ pod }) => {
        const [all, others] = [freed(''), freed(pod)];
        return wants.some(
          (want, r) => want > 0 && (others[r] as number) < want && (others[r] as number) < (all[r] as number),
        );
      });
    }),
    { numRuns: cases(400, 5_000) },
  );
  t.end();
});

test('evictions end after some periods', (t) => {
  fc.assert(
    fc.property(situations, (situation) => {
      let { pods } = situation;
      let memory = NO_MEMORY;
      for (let now = 0; now < 60; now++) {
        const plan = arbitrate({ ...situation, pods, now }, memory, { graceMs: 0, cooldownMs: 0 });
        if (plan.evictions.length === 0) return true;
        const gone = new Set(plan.evictions.map(({ pod }) => pod));
        pods = pods.filter(({ id }) => !gone.has(id));
        ({ memory } = plan);
      }
      return false;
    }),
    { numRuns: cases(200, 3_000) },
  );
  t.end();
});

test('an empty situation has an empty plan', (t) => {
  t.same(planEvictions({ capacity: new Map(), usages: [], pods: [], disruptions: new Map() }), []);
  t.same(
    arbitrate({ now: 0, capacity: new Map(), consumers: [], pods: [], pending: new Map(), disruptions: new Map() })
      .allocations,
    [],
  );
  t.end();
});
