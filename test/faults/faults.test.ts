import tap, { test } from 'tap';
import { fastDirectory } from '../scratch.js';
import { runHistories } from './campaign.js';

tap.setTimeout(600_000);

const SEED = Number(process.env.GPU_MANAGER_SEED ?? 20_261);
const HISTORIES = 16;
const KILLS = 4;

test(
  `${HISTORIES} nodes whose agent is killed ${KILLS} times each, on bad disks and with a bad API server, lose nothing and give nothing twice`,
  { timeout: 600_000 },
  async (t) => {
    t.comment(`seed ${SEED}; npm run test:faults does the same for longer`);
    const indexes = Array.from({ length: HISTORIES }, (_, index) => index);
    const { failures, steps } = await runHistories({
      directory: await fastDirectory(t),
      seed: SEED,
      indexes,
      together: HISTORIES,
      kills: KILLS,
    });
    for (const { index, story } of failures)
      t.comment(`history ${index}: npm run test:faults -- --seed ${SEED} --kills ${KILLS} --only ${index}\n${story}`);
    t.same(
      failures.map(({ index, violations }) => ({ index, violations })),
      [],
    );
    t.ok(steps.size > 10, `killed at ${steps.size} different steps`);
  },
);
