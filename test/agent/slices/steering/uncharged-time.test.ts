import { test } from 'tap';
import { UnchargedTime } from '../../../../src/agent/slices/steering/uncharged-time.js';

/** `HONEST_HOURS=10000` takes some minutes. */
const HOURS = Number(process.env['HONEST_HOURS'] ?? 4);
const TICK_MS = 100;
/** Between ticks while nothing is charged. */
const AT_REST_MS = 1_000;
/** Times of samples within five seconds, in ms, as of the monitor. */
const SAMPLES_MS = [0, 1_300, 2_100, 3_400, 4_200];
/** Half a period after each, the processes are listed. */
const CHECKS_MS = SAMPLES_MS.map((ms) => ms + 500);
/** A report is not older than this (`processes` of the driver). */
const REPORTED_MS = 1_000;

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
  /** The time that it is charged, as a part of the time that it takes; 1 if absent. */
  readonly charged?: number;
}

/**
 * The largest uncharged part that the agent sees, by second, while a container does this work. A report is the last
 * recent window of the driver with work, as of nvmlDeviceGetProcessUtilization; null where the driver reports nothing.
 */
function see(work: Iterable<Work>, seconds: number, windowMs: number | null): Map<number, number> {
  const uncharged = new UnchargedTime();
  const seen = new Map<number, number>();
  const source = work[Symbol.iterator]();
  let next = source.next();
  let current: Work[] = [];
  let sampledMs = 0;
  const used = (fromMs: number, toMs: number): number =>
    current.reduce(
      (sum, one) => sum + one.part * Math.max(0, Math.min(toMs, one.toMs) - Math.max(fromMs, one.fromMs)),
      0,
    );
  const report = (ms: number): number | null => {
    if (windowMs === null) return null;
    for (let end = Math.floor(ms / windowMs) * windowMs; end > ms - REPORTED_MS; end -= windowMs) {
      const percent = Math.floor((100 * used(end - windowMs, end)) / windowMs);
      if (percent > 0) return Math.min(100, percent);
    }
    return 0;
  };
  let tick = { chargedMs: 0, launches: 0, unknownLaunches: 0 };
  let [tickedMs, rests] = [0, false];
  for (let ms = TICK_MS; ms <= seconds * 1_000; ms += TICK_MS) {
    while (next.done !== true && next.value.fromMs < ms) {
      current.push(next.value);
      next = source.next();
    }
    const before = ms - TICK_MS;
    const within = (at: number): boolean => at >= before && at < ms;
    for (const { fromMs, toMs, part, chargedAtMs, launches, unknown, charged = 1 } of current) {
      const all = charged * part * (toMs - fromMs);
      if (within(fromMs)) {
        tick.launches += launches;
        tick.unknownLaunches += unknown === true ? launches : 0;
      }
      if (chargedAtMs === 'begin' && within(fromMs)) tick.chargedMs += all;
      if (chargedAtMs === 'end' && within(toMs)) tick.chargedMs += all;
      if (chargedAtMs === 'while')
        tick.chargedMs += charged * part * Math.max(0, Math.min(ms, toMs) - Math.max(before, fromMs));
    }
    if (!rests || ms % AT_REST_MS === 0) {
      const { chargedMs, ...counted } = tick;
      uncharged.tick({ chargedNs: chargedMs * 1e6, ...counted, elapsedNs: (ms - tickedMs) * 1e6 });
      rests = chargedMs === 0;
      tickedMs = ms;
      tick = { chargedMs: 0, launches: 0, unknownLaunches: 0 };
      const found = uncharged.take();
      if (found !== null) seen.set(ms / 1_000, found);
    }
    const isSample = SAMPLES_MS.includes(ms % 5_000);
    if (isSample || CHECKS_MS.includes(ms % 5_000))
      uncharged.report({ percent: report(ms), elapsedNs: (ms - sampledMs) * 1e6, isSample });
    if (!isSample) continue;
    sampledMs = ms;
    current = current.filter(({ toMs }) => toMs > ms - 3_000);
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
  'programs whose long kernels are counted when they begin to wait for tokens': function* (random) {
    for (let at = 0; ;) {
      const longMs = 300 + 5_000 * random() ** 2;
      yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'begin', launches: 0 };
      at += longMs / 0.3;
    }
  },
  'programs whose kernels take up to three times their charge, by their data': function* (random) {
    for (let at = 0; ; at += 200)
      yield { fromMs: at, toMs: at + 200, part: 0.9 * random(), chargedAtMs: 'while', launches: 20, charged: 0.34 };
  },
  'programs that fork workers, which all launch at once and end together': function* (random) {
    for (let at = 0; ; at += 2_000 + 20_000 * random()) {
      const workers = 1 + Math.floor(8 * random());
      const longMs = 100 + 5_000 * random() ** 2;
      for (let worker = 0; worker < workers; worker += 1)
        yield { fromMs: at, toMs: at + longMs, part: 1 / workers, chargedAtMs: 'while', launches: 5 };
      at += longMs;
    }
  },
  'programs that launch long graphs': function* (random) {
    for (let at = 0; ; at += 10_000 * random()) {
      const longMs = 100 + 2_000 * random();
      yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'end', launches: 1, unknown: true };
      at += longMs / 0.3;
      for (let of = 0; of < 10; of += 1, at += longMs / 0.3)
        yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'begin', launches: 1 };
    }
  },
  'programs that always launch new kernels, as tuners and lazily loaded modules of CUDA 13 do': function* (random) {
    for (let at = 0; ;) {
      const longMs = 1 + 60 * random() ** 2;
      yield { fromMs: at, toMs: at + longMs, part: 1, chargedAtMs: 'end', launches: 1, unknown: true };
      at += longMs / 0.3 + 20 * random();
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

test('a launch whose cost is not known yet explains what the driver reports of it, also over an account', (t) => {
  const uncharged = new UnchargedTime();
  const tick = { chargedNs: 0, launches: 0, unknownLaunches: 0, elapsedNs: 1e8 };
  uncharged.tick({ ...tick, launches: 1, unknownLaunches: 1 });
  uncharged.report({ percent: 80, elapsedNs: 1e9, isSample: true });
  t.equal(uncharged.tick(tick), 0);
  t.equal(uncharged.take(), null);
  t.end();
});

test('where the driver reports no times, as of a MIG instance, no time is uncharged', (t) => {
  t.same([...see(bypass(generator(5), 1, 0), 3_600, null)], []);
  t.end();
});

/** Once in ten seconds a program takes a second of the GPU past the library, at any moment of a sample. */
function* bypass(random: () => number, part: number, besides: number): Generator<Work> {
  for (let at = 10_000; ; at += 10_000) {
    const fromMs = at + Math.floor(1_000 * random());
    const work: Work[] = [{ fromMs, toMs: fromMs + 1_000, part, chargedAtMs: 'never', launches: 0 }];
    for (let ms = at - 9_000; besides > 0 && ms < at + 1_000; ms += 500)
      work.push({ fromMs: ms, toMs: ms + 500, part: besides, chargedAtMs: 'while', launches: 10 });
    yield* work.sort((one, other) => one.fromMs - other.fromMs);
  }
}

/** How many of 1,000 such bypasses the agent sees. */
function seenOf1000(part: number, besides: number, windowMs: number): number {
  const seen = see(bypass(generator(5), part, besides), 10_020, windowMs);
  return new Set([...seen.keys()].map((second) => Math.floor(second / 10)).filter((at) => at <= 1_000)).size;
}

for (const share of [20, 80])
  for (const windowMs of [1_000 / 6, 1_000])
    test(`every second that a program takes past the library is seen, ten points over ${share}, in windows of ${Math.round(windowMs)} ms`, (t) => {
      t.equal(seenOf1000((share + 10) / 100, 0, windowMs), 1_000);
      t.end();
    });

test('launches of the same seconds may explain four times their charge', (t) => {
  t.equal(seenOf1000(1, 0.02, 1_000 / 6), 1_000);
  t.equal(seenOf1000(1, 0.3, 1_000 / 6), 0, 'the correction of their charges holds the share instead');
  t.end();
});
