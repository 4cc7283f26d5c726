import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** `npm test -- ARGUMENT...`; the build finds nothing to do, because this test runs after one. */
function testCommand(...args: string[]) {
  return spawnSync(process.execPath, ['scripts/test.mjs', ...args], { cwd: ROOT, encoding: 'utf8' });
}

test('one test file runs by the path of its source or of what it compiles to', async (t) => {
  for (const path of ['test/host/listeners.test.ts', 'dist/test/host/listeners.test.js']) {
    const { status, stdout } = testCommand(path);
    t.equal(status, 0, path);
    t.match(stdout, /^ok 1 - listeners get each event/mu);
    t.match(stdout, /# test\/host\/listeners\.test\.ts: passed/u);
  }
});

test('all files of a folder run, each once', async (t) => {
  const { status, stdout } = testCommand('test/gpu/topology', 'test/gpu/topology/print.test.ts');
  t.equal(status, 0);
  t.equal(stdout.match(/# test\/gpu\/topology\/print\.test\.ts: passed/gu)?.length, 1);
  t.match(stdout, /# (\d+) of \1 files passed/u);
});

test('a path that is no test file is refused with what was expected', async (t) => {
  for (const [path, message] of [
    ['test/host/missing.test.ts', /no test file test\/host\/missing\.test\.ts; expected a path such as/u],
    ['src/host/rounds.ts', /not a test file: its name does not end with \.test\.ts or \.long\.ts/u],
    ['test/e2e/agent.e2e.ts', /npm run test:e2e -- agent/u],
  ] as const) {
    const { status, stderr } = testCommand(path);
    t.equal(status, 2, path);
    t.match(stderr, message);
  }
});
