import { test } from 'tap';
import {
  audit,
  type AuditedProcess,
  type AuditedSession,
  type AuditView,
} from '../../../../src/agent/slices/audit/audit.js';
import { advance, NO_FINDINGS, type FindingState } from '../../../../src/agent/slices/audit/findings.js';
import { SampledUse } from '../../../../src/agent/slices/audit/sampled-use.js';
import { cases } from '../../../cases.js';

const MIB = 2 ** 20;
const LIMIT = 4096 * MIB;
/** `HONEST_HOURS=10000` takes some minutes. */
const HOURS = Number(process.env['HONEST_HOURS'] ?? cases(40, 400));
/** Of one simulated container. Each hour has hundreds of programs. */
const SECONDS = HOURS * 3_600;

/** A generator of numbers in [0, 1), the same in every run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A program as driver, socket and /proc show it. Times in ms. */
interface Program {
  readonly pid: number;
  /** The driver lists it from here on. */
  readonly listedMs: number;
  /** The agent reads its greeting; later than `listedMs` when the node is busy. */
  readonly greetedMs: number;
  /** It ends or is killed: its connection is closed, and it is exiting. */
  readonly endMs: number;
  /** The driver still lists it until then. */
  readonly goneMs: number;
  readonly memoryBytes: number;
  readonly busy: boolean;
}

const slotOf = (pid: number): AuditedSession['slot'] => ({
  slot: 0,
  pid,
  startTicks: pid,
  name: 'python3',
  selfTest: { driverFound: true, lookupKnown: true, devicesMatched: true, sessionOpen: true, eventsWork: true },
  unhooked: 0,
  obstacles: [],
  hasUnreadLinks: false,
});

/** What a kind of container shows beside what all of them do. */
interface Kind {
  readonly name: string;
  /** Of how many processes a program consists at most. */
  readonly processes?: number;
  /** The driver reports no times of processes: each may be active, and nothing is known of charges. */
  readonly timesUnknown?: true;
  /** Launches since its start, and how many were timed. */
  readonly counters?: Pick<AuditView['devices'][number], 'launches' | 'samples'>;
  /** Memory that the driver counts and no charge covers, at most. */
  readonly uncountedBytes?: number;
}

const KINDS: readonly Kind[] = [
  { name: 'programs that start, work, end and are killed' },
  { name: 'programs that fork workers, which all greet at once and end together', processes: 8 },
  { name: 'programs that launch a few graphs, none of them timed yet', counters: { launches: 900, samples: 0 } },
  { name: 'programs in a MIG instance', timesUnknown: true },
  { name: 'programs of CUDA 13, which load modules while they run', uncountedBytes: 900 * MIB },
];

for (const kind of KINDS)
  test(`${HOURS} simulated hours of ${kind.name} raise no finding`, (t) => {
    const random = generator(7);
    const sampled = new SampledUse();
    let programs: Program[] = [];
    let [pid, started] = [1, 0];
    let state: FindingState = NO_FINDINGS;
    const raised: string[] = [];
    let nextStartMs = 0;
    let agentRestartMs = Infinity;
    for (let second = 1; second <= SECONDS; second += 1) {
      const nowMs = second * 1_000 + 300 * (second % 3);
      if (nowMs >= nextStartMs) {
        const listedMs = nowMs - Math.floor(1_000 * random());
        const endMs = listedMs + 100 + Math.floor(60_000 * random() ** 3);
        const processes = kind.processes === undefined ? 1 : 1 + Math.floor(kind.processes * random());
        for (let process = 0; process < processes; process += 1)
          programs.push({
            pid: ++pid,
            listedMs,
            greetedMs: listedMs - 300 + Math.floor(1_200 * random()),
            endMs,
            goneMs: endMs + Math.floor(2_000 * random() ** 4),
            // Modules are counted afterwards, so the driver may count a little more than the limit.
            memoryBytes: Math.floor((LIMIT / 3 / processes) * random()) + (random() < 0.01 ? 60 * MIB : 0),
            busy: kind.timesUnknown === true || random() < 0.7,
          });
        started += 1;
        nextStartMs = nowMs + Math.floor(20_000 * random());
      }
      if (random() < 1 / 7_200) agentRestartMs = nowMs;
      programs = programs.filter(({ goneMs }) => goneMs > nowMs);
      const listed = programs.filter(({ listedMs }) => listedMs <= nowMs);
      // After a restart of the agent a program greets it again at its next launch.
      const settling = nowMs - agentRestartMs < 3_000 && nowMs >= agentRestartMs;
      const hasSession = ({ greetedMs, endMs }: Program): boolean => greetedMs <= nowMs && endMs > nowMs && !settling;
      const used = listed.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
      if (used > LIMIT) sampled.noteExcess('GPU-0', Math.min(used, LIMIT + 60 * MIB));
      for (const program of listed) {
        if (hasSession(program)) continue;
        const exiting = program.endMs <= nowMs;
        const describe = (): Omit<AuditedProcess, 'active'> | null =>
          exiting || settling
            ? null
            : { pid: program.pid, name: 'python3', greeted: false, claimed: true, library: true };
        sampled.noteProcess(program.pid, program.busy, nowMs, describe);
      }
      if (second % 5 !== 0) continue;
      const auditMs = nowMs + 50;
      const known = new Map(programs.map((program) => [program.pid, program]));
      const { processes, peakBytes } = sampled.take(auditMs, (one, atMs) => {
        const program = known.get(one);
        // A program that has ended greeted before: the greeting stays in the socket until the agent reads it.
        return program === undefined || (program.greetedMs >= atMs && program.greetedMs <= auditMs);
      });
      const sessions = listed.filter(hasSession);
      const view: AuditView = {
        processes: [
          ...processes,
          ...sessions.map((one) => ({ pid: one.pid, name: '', greeted: true, claimed: false, active: one.busy })),
        ],
        sessions: sessions.map((one) => ({ pid: one.pid, slot: slotOf(one.pid), onGpu: true })),
        devices: [
          {
            gpuUuid: 'GPU-0',
            memoryLimitBytes: LIMIT,
            usedMemoryBytes: peakBytes.get('GPU-0') ?? Math.min(used, LIMIT),
            share: 30,
            ...(kind.counters ?? { launches: 5_000, samples: 100 }),
            wentBack: false,
            uncountedMemoryBytes: Math.floor((kind.uncountedBytes ?? 300 * MIB) * random()),
            unchargedTimePpm: kind.timesUnknown ? null : Math.floor(80_000 * random()),
            uncorrectableTimePpm: kind.timesUnknown ? null : Math.floor(50_000 * random()),
          },
        ],
        usesOfOtherGpus: [],
        fileProblem: null,
        fileGrown: null,
      };
      const news = advance(state, audit(view), 'evict');
      state = news.state;
      for (const finding of news.raised) raised.push(`${finding.code} at ${second} s: ${finding.message}`);
      if (news.evict !== null) raised.push(`eviction at ${second} s`);
    }
    t.same(raised, []);
    t.ok(started > HOURS * 100, 'with hundreds of programs an hour');
    t.end();
  });
