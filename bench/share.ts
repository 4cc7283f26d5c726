import { monitorEventLoopDelay } from 'node:perf_hooks';
import { measured, type BenchOptions } from './report.js';
import { SteeringAgent } from './sim/agent.js';
import { SimulatedMachine } from './sim/machine.js';
import { resized, visited, type Change } from './share/change.js';
import { ShareBench, type CardResult } from './share/measure.js';
import { lonely, neighbours, type Round } from './share/rows.js';

/** Points of a card, or percent of it: what is promised. */
const GOALS = { lonely: 1, lonelySecond: 3, neighbours: 2, work: 97, changeMs: 500 } as const;
const SECONDS = 10;
const QUICK_SECONDS = 3;
const CARDS = 5;

/**
 * How exactly containers get their share of a simulated card, by the card's own account: one container on a card and two to four, with kernels from
 * 20 us to 20 ms, several streams, graphs, cooperative launches, bursts and launch-and-wait; while shares change and neighbours come
 * and go; with the agent, without it, and on cards whose NVML is silent. The baseline of a share is what was asked.
 *
 *     npm run bench -- share [--quick] [ROW...]      rows whose name contains one of these texts; `changes`: of shares and neighbours
 */
export async function run({ args, report, note }: BenchOptions): Promise<void> {
  const quick = args.includes('--quick');
  const wanted = args.filter((argument) => !argument.startsWith('-'));
  const seconds = quick ? QUICK_SECONDS : SECONDS;
  const machine = await SimulatedMachine.open(CARDS);
  const agent = await SteeringAgent.start(machine);
  const bench = new ShareBench(machine, agent);
  const lateness = monitorEventLoopDelay({ resolution: 5 });
  lateness.enable();
  const missed: string[] = [];
  const hold = (held: boolean, what: string): void => {
    if (!held) missed.push(what);
  };
  const measure = async (rounds: readonly Round[], each: (result: CardResult, name: string) => void): Promise<void> => {
    for (const round of rounds.map((candidate) => chosen(candidate, wanted))) {
      if (round.cards.length === 0) continue;
      for (const result of await bench.measure(round, seconds)) {
        const name = round.steering === 'agent' ? result.row.name : `${result.row.name}, ${round.steering}`;
        for (const { asked, got } of result.tenants) report(measured(result.tenants.length > 1 ? `${name}: ${asked}` : name, got, '%', asked));
        each(result, name);
      }
    }
  };
  try {
    let [error, second] = [0, 0];
    await measure(lonely(quick), ({ tenants }, name) => {
      for (const { asked, got, worstSecond } of tenants) {
        error = Math.max(error, Math.abs(got - asked));
        second = Math.max(second, worstSecond);
        hold(Math.abs(got - asked) <= GOALS.lonely, `${name}: ${got.toFixed(2)} over ${seconds} s`);
        hold(worstSecond <= GOALS.lonelySecond, `${name}: off by ${worstSecond.toFixed(2)} in a second`);
      }
    });
    report(measured(`one container: largest error over ${seconds} s`, error, 'points'));
    report(measured('one container: largest error over 1 s', second, 'points'));

    let [shared, work] = [0, 100];
    await measure(neighbours(quick), ({ tenants, work: done }, name) => {
      const asked = tenants.reduce((sum, tenant) => sum + tenant.asked, 0);
      for (const tenant of tenants) {
        shared = Math.max(shared, Math.abs(tenant.got - tenant.asked));
        hold(Math.abs(tenant.got - tenant.asked) <= GOALS.neighbours, `${name}: ${tenant.got.toFixed(2)} instead of ${tenant.asked}`);
      }
      if (asked < 100) return;
      work = Math.min(work, done);
      hold(done >= GOALS.work, `${name}: ${done.toFixed(2)} % of the card's time is work`);
    });
    report(measured(`two to four containers: largest error over ${seconds} s`, shared, 'points'));
    report(measured('two to four containers of 100 together: least work', work, '%', 100));

    if (wanted.length === 0 || wanted.includes('changes')) {
      for (const change of [...(await resized(bench)), ...(await visited(bench, 30, 90, 70))]) {
        reportChange(change);
      }
    }
  } finally {
    await agent.stop();
    await machine.close();
  }
  lateness.disable();
  const late = (percentile: number): string => (lateness.percentile(percentile) / 1e6 - 5).toFixed(1);
  note(`timers of this machine were late by ${late(50)} ms (median), ${late(99)} ms (1 in 100), ${late(99.9)} ms (1 in 1000); programs that are kept from launching for more than 50 ms lose share`);
  note(missed.length === 0 ? 'every goal is met' : `goals missed:\n${missed.map((line) => `  ${line}`).join('\n')}`);

  function reportChange({ name, reachedMs }: Change): void {
    hold(reachedMs !== null && reachedMs <= GOALS.changeMs, `${name}: ${reachedMs === null ? 'never' : `after ${reachedMs.toFixed(0)} ms`}`);
    if (reachedMs !== null) report(measured(name, reachedMs, 'ms'));
  }
}

function chosen(round: Round, wanted: readonly string[]): Round {
  if (wanted.length === 0) return round;
  return { ...round, cards: round.cards.filter(({ name }) => wanted.some((text) => name.includes(text))) };
}
