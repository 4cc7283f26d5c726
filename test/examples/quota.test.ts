import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

function run(program: string, ...args: string[]): string {
  return execFileSync(process.execPath, [join(ROOT, program), ...args], { encoding: 'utf8' });
}

test('the example in JavaScript admits what fits, and says how much of the rest would', (t) => {
  const told = run('examples/quota-engine.mjs');
  t.equal(told, 'train: OK\ntune: QuotaExceeded (2 of 3 fit)\nused: 4 GPUs\n');
  t.end();
});

test('the example in TypeScript finds its journal after a restart', async (t) => {
  const directory = join(await scratchDirectory(t), 'journal');
  t.equal(run('dist/examples/quota-engine.js', directory), 'train: OK\nafter a restart: 4 GPUs used\n');
});

test('the example of a custom store finds its file after a restart', async (t) => {
  const file = join(await scratchDirectory(t), 'quota.json');
  for (let start = 0; start < 2; start++)
    t.equal(run('dist/examples/quota-custom-store.js', file), 'limits.cpu used: 6000 thousandths of a core\n');
});
