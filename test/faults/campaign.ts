import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentHouse } from './agent-house.js';
import { History } from './history.js';

export interface CampaignOptions {
  readonly directory: string;
  readonly seed: number;
  /** The numbers of the histories. */
  readonly indexes: readonly number[];
  /** The number of agents that share a process and are killed together. */
  readonly together: number;
  /** How often each agent is killed. */
  readonly kills: number;
}

export interface Outcome {
  readonly histories: number;
  readonly kills: number;
  /** How often agents were killed at each named step; kills of an idle agent count under that name. */
  readonly steps: ReadonlyMap<string, number>;
  /** Of each history that failed: its number, the faults, and all events. */
  readonly failures: readonly {
    readonly index: number;
    readonly violations: readonly string[];
    readonly story: string;
  }[];
}

/** Runs histories, several at a time, each with an agent of its own in a shared process. */
export async function runHistories(options: CampaignOptions): Promise<Outcome> {
  const steps = new Map<string, number>();
  const failures: Outcome['failures'][number][] = [];
  let kills = 0;
  const indexes = [...options.indexes];
  while (indexes.length > 0) {
    const batch = indexes.splice(0, options.together);
    const directory = join(options.directory, String(batch[0]));
    await mkdir(directory, { recursive: true });
    const devices = join(options.directory, 'devices');
    const histories = batch.map((index) => ({
      index,
      history: new History({ directory, devices, index, seed: options.seed }),
    }));
    for (const { history } of histories) await history.open();
    for (let life = 0; life < options.kills; life += 1) {
      const house = new AgentHouse();
      const alive = histories.filter(({ history }) => history.passed);
      for (const step of await Promise.all(alive.map(({ history }) => history.live(house))))
        steps.set(step ?? 'at rest', (steps.get(step ?? 'at rest') ?? 0) + 1);
      kills += alive.length;
      await house.kill();
      for (const { history } of alive) await history.bury();
    }
    const house = new AgentHouse();
    await Promise.all(histories.filter(({ history }) => history.passed).map(({ history }) => history.finish(house)));
    await house.kill();
    for (const { index, history } of histories) {
      await history.close();
      if (history.passed) continue;
      const log = await readFile(`${join(directory, history.name)}.log`, 'utf8').catch(() => '');
      failures.push({
        index,
        violations: history.violations,
        story: [...history.lines, '', ...log.trimEnd().split('\n').slice(-40)].join('\n'),
      });
    }
    await rm(directory, { recursive: true, force: true });
  }
  return { histories: options.indexes.length, kills, steps, failures };
}
