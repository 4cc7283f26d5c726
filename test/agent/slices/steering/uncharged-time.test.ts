import { test } from 'tap';
import { UnchargedTime } from '../../../../src/agent/slices/steering/uncharged-time.js';

/** `HONEST_HOURS=10000` takes some minutes. */
const HOURS = Number(process.env['HONEST_HOURS'] ?? 20);
const TICK_MS = 100;
const SAMPLE_MS = 1_000;

/** A generator of numbers in [0, 1), the same in every run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Work of a container on the GPU. Times in ms; `chargedAtMs`: when its launches are charged. */
interface Work {
  readonly fromMs: number;
  readonly toMs: number;
  /** The part of the GPU that it uses. */
  readonly part: number;
  readonly chargedAtMs: 'begin' | 'end' | 'while' | 'never';
  readonly launches: number;
  readonly unknown?: true;
}

/**
 * The largest uncharged part that the agent sees, by second, while a container does this work. A report is the last
 * window of the driver with work in the second before the sample, as of nvmlDeviceGetProcessUtilization.
 */
function see(work: Iterable<Work>, seconds: number, windowMs: number): Map<number, number> {
  const uncharged = new UnchargedTime();
  const seen = new Map<number, number>();
  const source = work[Symbol.iterator]();
  let next = source.next();
  let current: Work[] = [];
  const used = (fromMs: number, toMs: number): number =>
    current.reduce(
      (sum, one) => sum + one.part * Math.max(0, Math.min(toMs, one.toMs) - Math.max(fromMs, one.fromMs)),
      0,
    );
  for (let ms = TICK_MS; ms <= seconds * 1_000; ms += TICK_MS) {
    while (next.done !== true && next.value.fromMs < ms) {
      current.push(next.value);
      next = source.next();
    }
    const before = ms - TICK_MS;
    const within = (at: number): boolean => at >= before && at < ms;
    let [chargedMs, launches, unknownLaunches] = [0, 0, 0];
    for (const one of current) {
      const all = one.part * (one.toMs - one.fromMs);
      if (within(one.fromMs)) {
        launches += one.launches;
        unknownLaunches += one.unknown === true ? one.launches : 0;
      }
      if (one.chargedAtMs === 'begin' && within(one.fromMs)) chargedMs += all;
      if (one.chargedAtMs === 'end' && within(one.toMs)) chargedMs += all;
      if (one.chargedAtMs === 'while')
        chargedMs += one.part * Math.max(0, Math.min(ms, one.toMs) - Math.max(before, one.fromMs));
    }
    uncharged.tick({ chargedNs: chargedMs * 1e6, launches, unknownLaunches, elapsedNs: TICK_MS * 1e6 });
    if (ms % SAMPLE_MS === 0) {
      let percent = 0;
      for (let end = Math.floor(ms / windowMs) * windowMs; end > ms - SAMPLE_MS && percent === 0; end -= windowMs)
        percent = Math.floor((100 * used(end - windowMs, end)) / windowMs);
      uncharged.sample(Math.min(100, percent), SAMPLE_MS * 1e6);
      const found = uncharged.take();
      if (found !== null) seen.set(ms / 1_000, found);
      current = current.filter(({ toMs }) => toMs > ms - 2 * SAMPLE_MS);
    }
  }
  return seen;
}

type Program = (random: () => number) => Generator<Work>;

const HONEST: Readonly<Record<string, Program>> = {
  'programs that work without a pause': function* () {
    for (let at = 0; ; at += 500) yield { fromMs: at, toMs: at + 500, part: 0.3, chargedAtMs: 'while', launches: 50 };
  },
  'programs that work for a moment once in a while, at once': function* (random) {
    for (let at = 0; ; at += 300 + 3_000 * random()) {
      const burstMs = 20 + 250 * random();
      yield { fromMs: at, toMs: at + burstMs, part: 1, chargedAtMs: 'while', launches: 5 };
      at += burstMs;
    }
  },
  'programs whose long kernels are charged when they start': function* (random) {
    for (let at = 0; ;) {
      const longMs = 300 + 20_000 * random() ** 2;
      yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'begin', launches: 1 };
      at += longMs / 0.3;
    }
  },
  'programs whose first launch of a kernel is charged when it has ended': function* (random) {
    for (let at = 0; ; at += 60_000 + 600_000 * random()) {
      const longMs = 10_000 * random() ** 2;
      yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'end', launches: 1, unknown: true };
      for (let of = 0; of < 20; of += 1, at += longMs / 0.3)
        yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'begin', launches: 1 };
    }
  },
};

for (const [name, program] of Object.entries(HONEST))
  for (const windowMs of [1_000 / 6, 1_000])
    test(`${HOURS} simulated hours of ${name} show no uncharged time in windows of ${Math.round(windowMs)} ms`, (t) => {
      t.same([...see(program(generator(3)), HOURS * 3_600, windowMs)].slice(0, 5), []);
      t.end();
    });

/** Once in ten seconds a program takes a second of the GPU past the library, at any moment of a sample. */
function* bypass(random: () => number, part: number, besides: number): Generator<Work> {
  for (let at = 10_000; ; at += 10_000) {
    for (let ms = at - 9_000; besides > 0 && ms < at + 1_000; ms += 500)
      yield { fromMs: ms, toMs: ms + 500, part: besides, chargedAtMs: 'while', launches: 10 };
    const fromMs = at + Math.floor(1_000 * random());
    yield { fromMs, toMs: fromMs + 1_000, part, chargedAtMs: 'never', launches: 0 };
  }
}

/** The part of the bypasses of an hour that a sample shows, in percent. */
function seenPercent(part: number, besides: number, windowMs: number): number {
  const seen = see(bypass(generator(5), part, besides), 36_000, windowMs);
  return new Set([...seen.keys()].map((second) => Math.floor(second / 10))).size / 36;
}

for (const share of [20, 80])
  for (const windowMs of [1_000 / 6, 1_000])
    test(`a second that a program takes past the library is seen, ten points over ${share}, in windows of ${Math.round(windowMs)} ms`, (t) => {
      const percent = seenPercent((share + 10) / 100, 0, windowMs);
      t.ok(percent > 95, `${percent} %`);
      t.end();
    });

test('launches of the same seconds may explain four times their charge', (t) => {
  t.ok(seenPercent(1, 0.02, 1_000 / 6) > 99);
  t.equal(seenPercent(1, 0.3, 1_000 / 6), 0, 'the correction of their charges holds the share instead');
  t.end();
});
