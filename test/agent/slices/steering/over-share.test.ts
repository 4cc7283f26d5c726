import { test } from 'tap';
import { OverShare, type LawTick, type ShareAccount } from '../../../../src/agent/slices/steering/over-share.js';
import { AHEAD_NS, LENT_MOST_NS, TURN_NS } from '../../../../src/gpu/share-law.js';
import { cases } from '../../../cases.js';

/** Simulated minutes of each program. */
const MINUTES = cases(4, 200);
const MS = 1e6;
const CREDIT_NS = Number(LENT_MOST_NS);

/** A generator of numbers in [0, 1), the same in every run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const TENTH: LawTick = {
  chargedNs: 0,
  launches: 0,
  elapsedNs: 100 * MS,
  share: 20,
  allowedPpm: 200_000,
  correctionPpm: 1_000_000,
};

/** What a container launches next, and how the library charges it. Times in ms. */
interface Launch {
  readonly ms: number;
  /** Known when it has ended: until then it is charged a millisecond. */
  readonly unknown?: true;
  /** It pauses before this launch. */
  readonly restMs?: number;
  /** Of its processes that launch at once, those beside this one. */
  readonly beside?: number;
}

interface Setting {
  /** In ppm of the GPU, at a time in ms. */
  readonly allowed?: (ms: number) => number;
  readonly correction?: number;
  /** Its tokens are taken ahead, for a turn. */
  readonly turns?: true;
  /** The time between two ticks, in ms. */
  readonly tick?: (random: () => number) => number;
  /** How much later than the time of the tick its counters are read, in ms. */
  readonly lateMs?: number;
}

/** The accounts of a container that keeps the share law, and does not start a launch before its bucket allows it. */
function accountsOf(program: (random: () => number) => Launch, setting: Setting, minutes = MINUTES): ShareAccount[] {
  const { allowed = () => 200_000, correction = 1_000_000, tick = () => 100, lateMs = 0 } = setting;
  const random = generator(11);
  const law = new OverShare();
  const found: ShareAccount[] = [];
  const settled: { atNs: number; ns: number }[] = [];
  let [levelNs, chargedNs, launches] = [0, 0, 0];
  let next = program(random);
  let readyNs = 0;
  let [tickedNs, tickNs] = [0, tick(random) * MS];
  let before = { chargedNs, launches };
  let toldPpm = allowed(0);
  const take = (ns: number, nowNs: number): void => {
    levelNs = Math.max(levelNs, nowNs - CREDIT_NS) + (ns * correction) / toldPpm;
    chargedNs += ns;
  };
  for (let nowNs = 0; nowNs < minutes * 60_000 * MS; nowNs += MS) {
    const aheadNs = Number(AHEAD_NS) + (setting.turns === undefined ? 0 : (TURN_NS * correction) / toldPpm);
    while (settled[0] !== undefined && settled[0].atNs <= nowNs) take(settled.shift()?.ns ?? 0, nowNs);
    while (readyNs <= nowNs && levelNs <= nowNs + aheadNs && settled.length === 0) {
      for (let process = 0; process <= (next.beside ?? 0); process += 1) {
        launches += 1;
        take(next.unknown === true ? MS : next.ms * MS, nowNs);
        if (next.unknown === true) settled.push({ atNs: nowNs + next.ms * MS, ns: (next.ms - 1) * MS });
      }
      next = program(random);
      readyNs = nowNs + (next.restMs ?? 0) * MS;
    }
    if (nowNs < tickNs + lateMs * random() * MS) continue;
    law.tick({
      chargedNs: chargedNs - before.chargedNs,
      launches: launches - before.launches,
      elapsedNs: tickNs - tickedNs,
      share: 20,
      allowedPpm: toldPpm,
      correctionPpm: correction,
    });
    before = { chargedNs, launches };
    tickedNs = tickNs;
    tickNs = Math.max(nowNs, tickNs + tick(random) * MS);
    toldPpm = allowed(nowNs / MS);
    if (law.account !== null && law.account !== found.at(-1)) found.push(law.account);
  }
  return found;
}

const short = (): Launch => ({ ms: 2 });

const HONEST: Readonly<Record<string, readonly [(random: () => number) => Launch, Setting]>> = {
  'short kernels': [short, {}],
  'kernels of 30 to 300 ms': [(random) => ({ ms: 30 + 270 * random() }), {}],
  'kernels of up to 8 s': [(random) => ({ ms: 8_000 * random() ** 3 + 1 }), {}],
  'kernels whose time is known when they have ended': [
    (random) => ({ ms: 1 + 3_000 * random() ** 4, unknown: true }),
    {},
  ],
  'bursts after pauses': [(random) => ({ ms: 2, restMs: random() < 0.01 ? 5_000 * random() : 0 }), {}],
  'idle time that is lent and taken back': [short, { allowed: (ms) => 200_000 + 70_000 * (Math.floor(ms / 300) % 11) }],
  'a share that is changed': [short, { allowed: (ms) => [800_000, 200_000, 500_000][Math.floor(ms / 7_000) % 3] ?? 0 }],
  turns: [short, { turns: true, allowed: () => 50_000 }],
  'eight processes that launch at once': [(random) => ({ ms: 1 + 200 * random() ** 2, beside: 7 }), {}],
  'eight processes whose first kernels are of unknown duration': [
    (random) => ({ ms: 500 * random() + 2, beside: 7, unknown: true }),
    {},
  ],
  'charges that are corrected upwards': [short, { correction: 2_000_000 }],
  'charges that are corrected downwards': [short, { correction: 400_000 }],
  'ticks that come late on a busy node': [short, { tick: (random) => 100 + 900 * random() ** 3, lateMs: 80 }],
};

for (const [name, [program, setting]] of Object.entries(HONEST))
  test(`${MINUTES} simulated minutes with ${name} are within the share`, (t) => {
    const accounts = accountsOf(program, setting);
    t.ok(accounts.length >= MINUTES * 5, `${accounts.length} accounts`);
    t.ok(
      accounts.every(({ overPpm }) => overPpm < 10_000),
      `at most ${Math.max(...accounts.map(({ overPpm }) => overPpm))} ppm beyond it`,
    );
    t.end();
  });

/** The last account of a container that is charged the same in each tick of 100 ms for 40 s. */
function steady(
  chargedMs: number,
  launches: number,
  allowedPpm: number,
  correctionPpm = 1_000_000,
): ShareAccount | null {
  const law = new OverShare();
  for (let tick = 0; tick < 400; tick += 1)
    law.tick({ ...TENTH, chargedNs: chargedMs * MS, launches, allowedPpm, correctionPpm });
  return law.account;
}

test('launches without tokens count as beyond the share, and nothing else does', (t) => {
  const { usedPpm, allowedPpm, overPpm } = steady(77, 38, 400_000) ?? { usedPpm: 0, allowedPpm: 0, overPpm: 0 };
  t.same([usedPpm, allowedPpm], [770_000, 400_000]);
  t.ok(Math.abs(overPpm - 370_000) < 60_000, `${overPpm} ppm beyond it`);
  t.ok((steady(28, 14, 200_000)?.overPpm ?? 0) > 50_000, 'eight points too much');
  t.equal(steady(20, 10, 200_000)?.overPpm, 0);
  t.equal(steady(100, 0, 200_000)?.overPpm, 0, 'a long launch that is charged while it runs');
  t.end();
});

test('charges that were corrected count as corrected: a container that charges a quarter is over its share', (t) => {
  t.ok((steady(19, 10, 200_000, 4_000_000)?.overPpm ?? 0) > 400_000);
  t.ok(
    (steady(320, 10, 200_000, 250_000)?.overPpm ?? 0) > 400_000,
    'one that charges too much, to be corrected downwards',
  );
  t.equal(steady(80, 10, 200_000, 250_000)?.overPpm, 0);
  t.end();
});

/** The most that was beyond the share in any account, in ppm; `at` says what is different in a tick of 100 ms. */
function mostOver(ticks: number, at: (tick: number) => Partial<LawTick>): number {
  const law = new OverShare();
  let most = 0;
  for (let tick = 0; tick < ticks; tick += 1) {
    law.tick({ ...TENTH, ...at(tick) });
    most = Math.max(most, law.account?.overPpm ?? 0);
  }
  return most;
}

test('a program whose processes die in long kernels, and are charged for what they ran, is within its share', (t) => {
  // A kernel of 4 s is killed after 1.5 s, and the next process waits until that is paid.
  const life = (tick: number): Partial<LawTick> =>
    tick % 76 === 0 ? { chargedNs: 4e9, launches: 1 } : tick % 76 === 15 ? { chargedNs: -2.5e9 } : {};
  t.equal(mostOver(2_000, life), 0);
  t.end();
});

test('a debt is paid sooner when the share is raised', (t) => {
  const raised = { share: 80, allowedPpm: 800_000 };
  const program = (tick: number): Partial<LawTick> => {
    if (tick === 0) return { chargedNs: 4e9, launches: 1 };
    if (tick < 20) return {};
    return tick < 67 ? raised : { ...raised, chargedNs: 80 * MS, launches: 40 };
  };
  t.equal(mostOver(400, program), 0);
  t.end();
});

test('what is charged after a long kernel, when the next launch already waits, is no launch', (t) => {
  // Charged 2 s, it took 6: a launch is counted when it begins to wait, and charged when it has tokens.
  const program = (tick: number): Partial<LawTick> =>
    tick % 300 === 0 ? { chargedNs: 2e9 } : tick % 300 === 60 ? { chargedNs: 4e9, launches: 1 } : {};
  t.equal(mostOver(3_000, program), 0);
  t.end();
});

test('a container with forged tokens is over its share with kernels of any length', (t) => {
  for (const ticks of [1, 2, 5, 10])
    t.ok(
      mostOver(600, (tick) => (tick % ticks === 0 ? { chargedNs: 77 * ticks * MS, launches: 1 } : {})) > 300_000,
      `kernels of ${77 * ticks} ms`,
    );
  t.end();
});

test('a container that says that it launches once in ten seconds, for ten seconds, is found within two minutes', (t) => {
  const program = (tick: number): Partial<LawTick> => (tick % 100 === 0 ? { chargedNs: 10e9, launches: 1 } : {});
  t.equal(mostOver(300, program), 0, 'the first ones may be of several threads');
  t.ok(mostOver(1_200, program) > 500_000);
  t.end();
});
