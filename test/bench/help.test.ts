import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const COMMAND = fileURLToPath(new URL('../../bench/run.js', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../../bench', import.meta.url));

const NAMES = readdirSync(SOURCES)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts' && file !== 'report.ts')
  .map((file) => file.replace(/\.ts$/u, ''));

function bench(...args: string[]) {
  return spawnSync(process.execPath, [COMMAND, ...args], { encoding: 'utf8' });
}

test('the help of the benchmarks names each of them with what it measures, and runs none', async (t) => {
  for (const option of ['--help', '-h']) {
    const { status, stdout } = bench(option);
    t.equal(status, 0);
    for (const name of NAMES) t.match(stdout, new RegExp(`^  ${name} +[A-Z]`, 'mu'), name);
  }
});

test('the help of a benchmark is the comment at its run function', async (t) => {
  const { status, stdout } = bench('agent', '--help');
  t.equal(status, 0);
  t.match(stdout, /^What the agent costs:[^]*npm run bench -- agent \[--quick\]/u);
});

test('an unknown option or benchmark is refused', async (t) => {
  for (const argument of ['--hlep', 'agnet']) {
    const { status, stdout, stderr } = bench(argument);
    t.equal(status, 2);
    t.equal(stdout, '');
    t.match(stderr, argument);
  }
});
