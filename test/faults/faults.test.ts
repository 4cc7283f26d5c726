import { test } from 'tap';
import { fastDirectory } from '../scratch.js';
import { runHistories } from './campaign.js';

const SEED = Number(process.env.GPU_MANAGER_SEED ?? 20_261);
const HISTORIES = 16;
const KILLS = 4;

test(`${HISTORIES} nodes whose agents are killed ${KILLS} times each, with failing disks and a failing API server, lose no allocation and allocate no id twice`, async (t) => {
  t.comment(`seed ${SEED}; npm run test:faults runs the same for longer`);
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
  t.ok(steps.size > 10, `agents were killed at ${steps.size} different steps`);
});
