import {
  arbitrate,
  fairShares,
  NO_MEMORY,
  type ShareRequest,
  type Quantities,
  type RunningPod,
} from '../src/quota/index.js';
import { bisected } from '../test/quota/arbitrator/bisected.js';
import { randomIndex, seededRandom, type Random } from './openb/random.js';
import { measured, median, type BenchOptions } from './report.js';

const RESOURCES = Array.from({ length: 10 }, (_, at) => `example.com/resource-${at}`);
const ROUNDS = 20;
/** The largest number of consumers for the search; with more of them it takes half a minute. */
const SEARCHED = 1000;
const SEED = 42;
/** The goal of a period. */
const PODS = 20_000;

/**
 * The fair shares of a cluster's consumers: a thousand of them and five thousand, of ten resources (baseline: searching
 * for every level by bisection), and a whole period of the arbitrator with all its pods.
 *
 *     npm run bench -- drf
 */
export async function run({ report, note }: BenchOptions): Promise<void> {
  for (const consumers of [SEARCHED, 5000]) {
    const random = seededRandom(SEED);
    const claims = Array.from({ length: consumers }, (_, at) => claimOf(at, random));
    const capacity = capacityFor(claims);
    const times = Array.from({ length: ROUNDS }, () => timeOf(() => fairShares(claims, capacity)));
    report(
      measured(
        `${consumers} consumers x ${RESOURCES.length} resources, median`,
        median(times),
        'ms',
        consumers === SEARCHED ? searchedMs(claims, capacity, note) : null,
      ),
    );
  }
  const random = seededRandom(SEED);
  const claims = Array.from({ length: 1000 }, (_, at) => claimOf(at, random));
  const pods = Array.from({ length: PODS }, (_, at): RunningPod => ({
    id: `pod-${at}`,
    consumer: `consumer-${randomIndex(random, 300)}`,
    uses: amounts(random, 4),
    priority: at % 3,
    startedAt: at,
    budgets: at % 5 === 0 ? ['budget'] : [],
  }));
  const situation = {
    now: 0,
    pods,
    consumers: claims,
    capacity: new Map(
      RESOURCES.map((resource) => [resource, pods.reduce((sum, { uses }) => sum + (uses.get(resource) ?? 0), 0)]),
    ),
    pending: new Map(claims.slice(300).map(({ name, request }) => [name, request])),
    disruptions: new Map([['budget', 100]]),
  };
  const plans = Array.from({ length: 5 }, () => {
    let evictions = 0;
    const ms = timeOf(() => (evictions = arbitrate(situation, NO_MEMORY, { graceMs: 0 }).evictions.length));
    return { ms, evictions };
  });
  report(measured(`a period of 1000 consumers and ${PODS} pods`, median(plans.map(({ ms }) => ms)), 'ms'));
  note(`a period with ${plans[0]?.evictions ?? 0} evictions`);
}

function claimOf(at: number, random: Random): ShareRequest {
  const request = amounts(random, 1 + randomIndex(random, RESOURCES.length));
  const reserved = new Map([...request].slice(0, 2).map(([resource, amount]) => [resource, Math.floor(amount / 4)]));
  return { name: `consumer-${at}`, request, weight: 1 + randomIndex(random, 4), ...(at % 3 === 0 ? { reserved } : {}) };
}

function amounts(random: Random, count: number): Quantities {
  return new Map(
    Array.from({ length: count }, () => [
      RESOURCES[randomIndex(random, RESOURCES.length)] as string,
      1 + randomIndex(random, 100_000),
    ]),
  );
}

/** Half of the demand: more of some resources, less of others. */
function capacityFor(claims: readonly ShareRequest[]): Quantities {
  return new Map(
    RESOURCES.map((resource, at) => [
      resource,
      Math.floor(claims.reduce((sum, { request }) => sum + (request.get(resource) ?? 0), 0) * (0.3 + at * 0.05)),
    ]),
  );
}

/** How long the search takes; notes how far its result differs from the other algorithm's. */
function searchedMs(claims: readonly ShareRequest[], capacity: Quantities, note: BenchOptions['note']): number {
  let searched: number[][] = [];
  const ms = timeOf(() => (searched = bisected(claims, capacity)));
  const { of } = fairShares(claims, capacity);
  const apart = claims.flatMap(({ name }, who) =>
    [...capacity.keys()].map((resource, r) => Math.abs((of.get(name)?.get(resource) ?? 0) - (searched[who]?.[r] ?? 0))),
  );
  note(
    `${claims.length} consumers: both ways lead to the same, but for ${Math.max(...apart).toFixed(3)} of one unit by rounding`,
  );
  return ms;
}

function timeOf(act: () => unknown): number {
  const started = performance.now();
  act();
  return performance.now() - started;
}
