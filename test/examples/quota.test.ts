import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The examples as the package has them: they import it by its name. */
test('the examples of the quota engine', async (t) => {
  const scratch = await scratchDirectory(t);
  const staged = join(scratch, 'package');
  execFileSync(process.execPath, [join(ROOT, 'scripts/quota-package.mjs'), staged]);
  const run = (program: string, ...args: string[]): string =>
    execFileSync(process.execPath, [join(staged, 'examples', program), ...args], { encoding: 'utf8' });

  await t.test('in JavaScript admits what fits, and says how much of the rest would', async (t) => {
    t.equal(run('quota-engine.mjs'), 'train: OK\ntune: QuotaExceeded (2 of 3 fit)\nused: 4 GPUs\n');
  });

  await t.test('in TypeScript finds its journal after a restart', async (t) => {
    t.equal(run('quota-engine.js', join(scratch, 'journal')), 'train: OK\nafter a restart: 4 GPUs used\n');
  });

  await t.test('with a custom store finds its file after a restart', async (t) => {
    const file = join(scratch, 'quota.json');
    for (let start = 0; start < 2; start++)
      t.equal(run('quota-custom-store.js', file), 'limits.cpu used: 6000 thousandths of a core\n');
  });
});
