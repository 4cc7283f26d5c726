import { measured, median, type BenchOptions } from './report.js';
import { simulateTurns, type Program } from './turns/simulation.js';
import { MIB, suspendingNode, type Ending } from '../test/agent/suspending-node.js';
import { eventually } from '../test/harness/eventually.js';

/** What the simulated driver moves: 6 GB/s, as users measured it. */
const BYTES_PER_MS = 6e6;
const HOLD_MIB = 4096;
const ROUNDS = 3;
const GIB = 2 ** 30;
const HOUR_MS = 3_600_000;

/**
 * What a suspended container costs, on a simulated GPU that moves 6 GB/s: the time of suspend and resume, and of a call
 * that wakes its container, beside the bare transfer of the same bytes; and the work of three notebooks that take turns
 * on one GPU, in computed time, beside one alone. What a call costs in a container that may be suspended is in
 * `npm run bench -- hook`.
 *
 *     npm run bench -- suspend
 */
export async function run({ report, section }: BenchOptions): Promise<void> {
  const ends: (() => unknown)[] = [];
  try {
    await moves(report, { teardown: (end: () => unknown) => void ends.push(end) });
  } finally {
    for (const end of ends.reverse()) await end();
  }
  section('three notebooks that always work, on a GPU of 80 GiB');
  for (const memoryGib of [4, 20, 80]) {
    const programs = ['a', 'b', 'c'].map((id): Program => ({
      ...{ id, priority: 'normal', cores: 100, memoryBytes: memoryGib * GIB, workMs: Infinity, pauseMs: 0 },
    }));
    const options = { bytesPerMs: BYTES_PER_MS, elapsedMs: 12 * HOUR_MS };
    const result = simulateTurns({ cores: 100, memoryBytes: 80 * GIB }, programs, options);
    const worked = result.programs.reduce((sum, { workedMs }) => sum + workedMs, 0);
    const longest = Math.max(...result.programs.map(({ longestWaitMs }) => longestWaitMs));
    const name = `${memoryGib} GiB each`;
    report(measured(`${name}: work in sum`, worked / 1_000, 's', result.elapsedMs / 1_000));
    report(measured(`${name}: transfers`, result.transferMs / 1_000, 's', result.elapsedMs / 1_000));
    report(measured(`${name}: longest wait for a turn`, longest / 1_000, 's'));
  }
}

async function moves(report: BenchOptions['report'], t: Ending): Promise<void> {
  const node = await suspendingNode(t, true);
  const program = await node.start([String(HOLD_MIB)]);
  await node.seen(1);
  const bareMs = (node.usedMib() * MIB) / BYTES_PER_MS;
  const times = { suspend: [] as number[], resume: [] as number[], wake: [] as number[] };
  const timed = async (of: keyof typeof times, work: () => Promise<unknown>): Promise<void> => {
    const began = performance.now();
    await work();
    times[of].push(performance.now() - began);
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    await timed('suspend', () => node.suspend());
    await timed('resume', () => node.resume());
    await node.suspend(false);
    await timed('wake', async () => {
      const before = program.output.length;
      program.say('go');
      await eventually(() => program.output.length > before, 'the call goes on');
    });
  }
  const gib = `${HOLD_MIB / 1024} GiB`;
  report(measured(`suspend, ${gib}`, median(times.suspend), 'ms', bareMs));
  report(measured(`resume, ${gib}`, median(times.resume), 'ms', bareMs));
  report(measured(`a call that wakes its container, ${gib}`, median(times.wake), 'ms', bareMs));
}
