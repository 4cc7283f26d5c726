import { monitorEventLoopDelay } from 'node:perf_hooks';
import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { SimulatedMachine } from './sim/machine.js';
import { HOLDS_MS, resized, visited, WATCHED_MS } from './share/change.js';
import { JUDGED, LONELY, missesOf, NEIGHBOURS, VARIED, type Goals } from './share/goals.js';
import { ShareBench, type GpuResult } from './share/measure.js';
import { GPUS, lonely, neighbours, soft, varied, type GpuRow, type Round } from './share/rows.js';

const SECONDS = 10;
const QUICK_SECONDS = 3;
/** The maximum number of measurements of a row. */
const ATTEMPTS = 3;

/**
 * How exactly containers get their share of a simulated GPU, by the GPU's own counters: one container on a GPU and two
 * to four, with kernels from 20 us to 20 ms, several streams, graphs, cooperative launches, bursts and launch-and-wait;
 * under soft limits; with durations that vary; while shares change and neighbours come and go; with the agent, without
 * it, and on GPUs whose NVML reports nothing. The baseline of a share is the requested share.
 *
 * A program that does not run launches nothing, whatever its share. So a witness measures how long the machine kept
 * each program from running, and a row that misses a goal while its programs were delayed for longer than that goal
 * allows is measured again, twice at most. The last measurement counts; the earlier ones are noted with their figures.
 *
 *     npm run bench -- share [--quick] [ROW...]      rows whose name contains one of these texts; `changes`: of shares and neighbours
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const quick = args.includes('--quick');
  const wanted = args.filter((argument) => !argument.startsWith('-'));
  const seconds = quick ? QUICK_SECONDS : SECONDS;
  const machine = await SimulatedMachine.open(GPUS);
  const agent = await SteeringAgent.start(machine);
  const bench = new ShareBench(machine, agent);
  const lateness = monitorEventLoopDelay({ resolution: 5 });
  lateness.enable();
  const missed: string[] = [];
  const again: string[] = [];
  let heldUpMs = 0;

  /** Measures a round, and repeats the rows that the machine disturbed. In the order of its GPUs. */
  async function settled(round: Round, goals: Goals): Promise<GpuResult[]> {
    const results = new Map<GpuRow, GpuResult>();
    let gpus = round.gpus;
    for (let attempt = 1; gpus.length > 0; attempt += 1) {
      for (const result of await bench.measure({ ...round, gpus }, seconds)) results.set(result.row, result);
      const spoiled = gpus.filter((gpu) => isSpoiled(results.get(gpu), goals, seconds));
      if (attempt === ATTEMPTS) break;
      for (const gpu of spoiled)
        again.push(
          ...missesOf(resultOf(gpu, results), goals, seconds).map(({ what }) => `${nameOf(round, gpu)}: ${what}`),
        );
      gpus = spoiled;
    }
    return round.gpus.map((gpu) => resultOf(gpu, results));
  }

  /** Measures, reports and compares with the goals; the results that have goals. */
  async function measure(rounds: readonly Round[], goals: Goals): Promise<GpuResult[]> {
    const judged: GpuResult[] = [];
    for (const round of rounds.map((candidate) => chosen(candidate, wanted))) {
      if (round.gpus.length === 0) continue;
      for (const result of await settled(round, goals)) {
        const name = nameOf(round, result.row);
        for (const tenant of result.tenants) {
          report(
            measured(result.tenants.length > 1 ? `${name}: ${tenant.asked}` : name, tenant.got, '%', tenant.asked),
          );
          heldUpMs = Math.max(heldUpMs, tenant.heldUpMs);
        }
        judged.push(result);
        missed.push(...missesOf(result, goals, seconds).map(({ what }) => `${name}: ${what}`));
      }
    }
    return judged;
  }

  try {
    const alone = (await measure(lonely(quick), LONELY)).flatMap(({ tenants }) => tenants);
    if (alone.length > 0) {
      reportError(JUDGED.lonely, largestError(alone));
      reportError(JUDGED.lonelySecond, Math.max(...alone.map(({ worstSecond }) => worstSecond)));
    }
    const shared = await measure(neighbours(quick), NEIGHBOURS);
    if (shared.length > 0) {
      reportError(JUDGED.neighbours, largestError(shared.flatMap(({ tenants }) => tenants)));
      const whole = shared.filter(({ tenants }) => tenants.reduce((sum, { asked }) => sum + asked, 0) >= 100);
      report(measured(JUDGED.work, Math.min(100, ...whole.map(({ work }) => work)), '%', 100));
    }
    const lent = (await measure(soft(quick), NEIGHBOURS)).flatMap(({ tenants }) => tenants);
    if (lent.length > 0) reportError(JUDGED.soft, largestError(lent));

    const changing = (await measure(varied(), VARIED)).flatMap(({ tenants }) => tenants);
    if (changing.length > 0) reportError(JUDGED.varied, largestError(changing));

    if (wanted.length === 0 || wanted.includes('changes')) {
      const changes = [...(await resized(bench)), ...(await visited(bench, 30, 90, 70))];
      for (const { name, reachedMs } of changes) {
        if (reachedMs !== null) report(measured(name, reachedMs, 'ms'));
        else missed.push(`${name}: never`);
      }
      report(
        measured(JUDGED.changes, Math.max(...changes.map(({ reachedMs }) => reachedMs ?? WATCHED_MS)), 'ms', HOLDS_MS),
      );
    }
  } finally {
    await agent.stop();
    await machine.close();
  }
  lateness.disable();
  const late = (percentile: number): string => (lateness.percentile(percentile) / 1e6 - 5).toFixed(1);
  note(
    `timers of this machine were late by ${late(50)} ms (median), ${late(99)} ms (1 in 100), ${late(99.9)} ms (1 in 1000); no program was held up for more than ${heldUpMs.toFixed(0)} ms of a measurement`,
  );
  if (again.length > 0) note(`measured again, since the machine held the programs up:\n${listed(again)}`);
  if (missed.length > 0) note(`rows beyond the goals:\n${listed(missed)}`);

  function reportError(name: string, points: number): void {
    report(measured(name, points, 'points', 100));
  }
}

function chosen(round: Round, wanted: readonly string[]): Round {
  if (wanted.length === 0) return round;
  return { ...round, gpus: round.gpus.filter((gpu) => wanted.some((text) => nameOf(round, gpu).includes(text))) };
}

const nameOf = ({ steering }: Round, { name }: GpuRow): string =>
  steering === 'agent' ? name : `${name}, ${steering}`;

const listed = (lines: readonly string[]): string => lines.map((line) => `  ${line}`).join('\n');

function resultOf(gpu: GpuRow, results: ReadonlyMap<GpuRow, GpuResult>): GpuResult {
  const result = results.get(gpu);
  if (result === undefined) throw new RangeError(`${gpu.name} was not measured`);
  return result;
}

const isSpoiled = (result: GpuResult | undefined, goals: Goals, seconds: number): boolean =>
  result !== undefined && missesOf(result, goals, seconds).some(({ heldUp }) => heldUp);

const largestError = (tenants: GpuResult['tenants']): number =>
  Math.max(...tenants.map(({ asked, got }) => Math.abs(got - asked)));
