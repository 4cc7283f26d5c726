import { test } from 'tap';
import { fastDirectory } from '../scratch.js';
import { runHistories } from './campaign.js';

const SEED = Number(process.env.GPU_MANAGER_SEED ?? 20_261);
export interface Killing {
  readonly histories: number;
  /** How often each agent is killed. */
  readonly kills: number;
  /** Agents were killed at more different steps than these. */
  readonly stepsAtLeast: number;
}

/** Tests that nodes whose agents are killed at any moment lose no allocation and allocate no id twice. */
export function testKilledNodes({ histories, kills, stepsAtLeast }: Killing): void {
  void test(`${histories} nodes whose agents are killed ${kills} times each, with failing disks and a failing API server, lose no allocation and allocate no id twice`, async (t) => {
    t.comment(`seed ${SEED}; npm run test:faults runs the same for longer`);
    const indexes = Array.from({ length: histories }, (_, index) => index);
    const { failures, steps } = await runHistories({
      directory: await fastDirectory(t),
      seed: SEED,
      indexes,
      together: histories,
      kills,
    });
    for (const { index, story } of failures)
      t.comment(`history ${index}: npm run test:faults -- --seed ${SEED} --kills ${kills} --only ${index}\n${story}`);
    t.same(
      failures.map(({ index, violations }) => ({ index, violations })),
      [],
    );
    t.ok(steps.size > stepsAtLeast, `agents were killed at ${steps.size} different steps`);
  });
}
