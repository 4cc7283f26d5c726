import { test } from 'tap';
import { Quota, type Demand } from '../../src/quota/index.js';
import { cases } from '../cases.js';

const HARD = 10;
const STEPS = 100;
const HOLD_MS = 60_000;
/** API servers give up a request long before its reservation expires. */
const REQUEST_MS = 30_000;

/** A quota under test: decides, and observes later what happened. */
interface LedgerModel {
  /** Called before an object of `count` cores replaces one of `before` (0 for a new one) in version `base`. */
  admit(name: string, uid: string, base: number, before: number, count: number): boolean;
  /** Called late, by several independent observers, with an object's state or null after its deletion. */
  told(observer: number, name: string, uid: string, version: number, count: number | null): void;
  /** Recounts everything from the view of an observer. */
  refresh(observer: number): void;
  pass(ms: number): void;
  /** What the objects together may have now. */
  limit(): number;
}

/**
 * A counter that admission increments, deletion decrements and a recount sometimes resets, as quotas are often
 * implemented.
 */
class Counter implements LedgerModel {
  #used = 0;
  readonly #known = [new Map<string, number>(), new Map<string, number>()];

  admit(_name: string, _uid: string, _base: number, before: number, count: number): boolean {
    if (count > before && this.#used + count - before > HARD) return false;
    this.#used += count - before;
    return true;
  }

  told(observer: number, _name: string, uid: string, _version: number, count: number | null): void {
    const known = this.#known[observer] as Map<string, number>;
    if (count === null && observer === 0) this.#used = Math.max(0, this.#used - (known.get(uid) ?? 0));
    if (count === null) known.delete(uid);
    else known.set(uid, count);
  }

  refresh(observer: number): void {
    this.#used = [...(this.#known[observer] as Map<string, number>).values()].reduce((sum, count) => sum + count, 0);
  }

  pass(): void {
    // A counter ignores time.
  }

  limit(): number {
    return HARD;
  }
}

/** What objects request: cores of replicas, the size of a volume claim, the GPUs of a resource claim. */
const REQUESTS = {
  Deployment: {
    key: 'limits.cpu',
    of: (count: number) => ({ podSets: [{ count, limits: { cpu: 1 } }] }),
  },
  PersistentVolumeClaim: {
    key: 'requests.storage',
    of: (count: number) => ({ podSets: [{ count: 1, requests: { storage: count }, unspecified: [] }] }),
  },
  ResourceClaim: {
    key: 'requests.nvidia.com/gpu',
    of: (count: number) => ({ podSets: [{ count: 1, requests: { 'nvidia.com/gpu': count }, unspecified: [] }] }),
  },
} as const;

type Kind = keyof typeof REQUESTS;

/** The engine as the webhooks and the reconciler use it. */
class Engine implements LedgerModel {
  readonly #quota = new Quota();
  readonly #kind: Kind;
  /** Decides when the group lends how much for how long; null for a group that never lends. */
  readonly #lends: ((below: number) => number) | null;
  /** How many loans were given. */
  loans = 0;
  #ids = 0;
  #now = 0;

  constructor(kind: Kind = 'Deployment', lends: ((below: number) => number) | null = null) {
    this.#kind = kind;
    this.#lends = lends;
    const { key } = REQUESTS[kind];
    this.#quota.createGroup({ name: 'root', hard: { [key]: 2 * HARD } });
    for (const name of ['g', 'h']) this.#quota.createGroup({ name, parent: 'root', hard: { [key]: HARD } });
  }

  admit(name: string, uid: string, base: number, before: number, count: number): boolean {
    if (base > 0 && count <= before) return true;
    const demand = this.#demandOf(name, uid, base, count);
    return this.#quota.execute(
      { type: 'reserve', ...demand, ttlMs: HOLD_MS, operation: `${uid}@${base}:${count}` },
      this.#now,
    ).allowed;
  }

  told(_observer: number, name: string, uid: string, version: number, count: number | null): void {
    const demand = this.#demandOf(name, uid, version, count ?? 0);
    this.#quota.execute(
      { type: 'observe', workload: demand.workload, group: 'g', demand: count === null ? null : demand },
      this.#now,
    );
  }

  refresh(): void {
    this.#quota.refresh();
  }

  pass(ms: number): void {
    this.#now += ms;
    this.#quota.execute({ type: 'tick' }, this.#now);
    if (this.#lends === null || this.#lends(3) > 0) return;
    const amounts = { [REQUESTS[this.#kind].key]: 1 + this.#lends(4) };
    const until = this.#now + 1 + this.#lends(20_000);
    const loan = { type: 'loan', id: `l${++this.#ids}`, lender: 'g', borrower: 'h', amounts, until } as const;
    if (this.#quota.execute(loan, this.#now).allowed) this.loans++;
  }

  limit(): number {
    if (this.#lends === null) return HARD;
    return Number(this.#quota.status('g', this.#now)?.hard.get('limits.cpu')) / 1000;
  }

  #demandOf(name: string, uid: string, version: number, count: number): Demand {
    const workload = { kind: this.#kind, namespace: 'ns', name, uid, version };
    return { workload, group: 'g', ...REQUESTS[this.#kind].of(count) };
  }
}

interface Stored {
  readonly uid: string;
  readonly version: number;
  readonly count: number;
}

interface Flight extends Omit<Stored, 'version'> {
  readonly name: string;
  readonly base: number;
  readonly at: number;
}

/**
 * Runs one history of an API server: requests are admitted, written or not, and observed late. True if more objects
 * exist than fit.
 */
function goesOver(ledger: LedgerModel, random: (below: number) => number): boolean {
  const objects = new Map<string, Stored>();
  const flights: Flight[] = [];
  const news: [string, string, number, number | null][] = [];
  const heard = [0, 0];
  let [version, uids, now] = [0, 0, 0];
  const happen = (
    name: string,
    { uid, count }: { readonly uid: string; readonly count: number },
    isGone: boolean,
  ): void => {
    version++;
    if (isGone) objects.delete(name);
    else objects.set(name, { uid, version, count });
    news.push([name, uid, version, isGone ? null : count]);
  };
  for (let step = 0; step < STEPS; step++) {
    const name = `w${random(6)}`;
    const there = objects.get(name);
    switch (random(8)) {
      case 0:
      case 1: {
        const count = 1 + random(6);
        const [uid, base] = there === undefined ? [`u${++uids}`, 0] : [there.uid, there.version];
        if (ledger.admit(name, uid, base, there?.count ?? 0, count)) flights.push({ name, uid, base, count, at: now });
        break;
      }
      case 2:
      case 3: {
        const [flight] = flights.splice(random(Math.max(1, flights.length)), 1);
        if (flight === undefined || now - flight.at > REQUEST_MS || random(5) === 0) break;
        const current = objects.get(flight.name);
        if (flight.base === 0 ? current === undefined : current?.version === flight.base)
          happen(flight.name, flight, false);
        break;
      }
      case 4:
        if (there !== undefined && random(2) === 0) happen(name, there, true);
        break;
      case 5:
      case 6: {
        const observer = random(2);
        const [told, uid, at, count] = news[heard[observer] as number] ?? [];
        if (told === undefined || uid === undefined || at === undefined || count === undefined) break;
        heard[observer] = (heard[observer] as number) + 1;
        ledger.told(observer, told, uid, at, count);
        break;
      }
      default:
        if (random(2) === 0) ledger.refresh(random(2));
        else {
          const ms = random(4000);
          now += ms;
          ledger.pass(ms);
        }
    }
    if ([...objects.values()].reduce((sum, { count }) => sum + count, 0) > ledger.limit()) return true;
  }
  return false;
}

/** Deterministic pseudo-random numbers. */
function generator(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 1 | state) + 0x6d2b79f5) | 0;
    const mixed = state ^ (state + Math.imul(state ^ (state >>> 7), 61 | state));
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function countOver(runs: number, make: () => LedgerModel): number {
  let over = 0;
  for (let run = 0; run < runs; run++) if (goesOver(make(), generator(run))) over++;
  return over;
}

test('a simple counter often admits too much, and never does the engine', (t) => {
  const counter = countOver(200, () => new Counter());
  t.comment(`over quota with a counter: ${counter} of 200`);
  t.ok(counter > 100, `${counter} of 200`);
  t.equal(
    countOver(cases(1_000, 20_000), () => new Engine()),
    0,
  );
  t.end();
});

for (const kind of ['PersistentVolumeClaim', 'ResourceClaim'] as const)
  test(`in no history of objects of the kind ${kind} is a group over its quota`, (t) => {
    t.equal(
      countOver(cases(200, 2_000), () => new Engine(kind)),
      0,
    );
    t.end();
  });

test('in no history is a group over a quota of which it lends parts for a time', (t) => {
  const engines: Engine[] = [];
  const over = countOver(cases(500, 2_000), () => {
    const engine = new Engine('Deployment', generator(engines.length * 31));
    engines.push(engine);
    return engine;
  });
  t.equal(over, 0);
  const loans = engines.reduce((sum, engine) => sum + engine.loans, 0);
  t.ok(loans > engines.length / 2, `${loans} loans`);
  t.end();
});
