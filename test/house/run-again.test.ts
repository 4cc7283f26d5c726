import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

type Teardown = Parameters<typeof scratchDirectory>[0];

interface Failed {
  readonly steps: Readonly<Record<string, number>>;
  readonly outputs?: Readonly<Record<string, string>>;
  /** What fails again, by the words that npm gets. */
  readonly fails?: readonly string[];
}

/** What continuous integration says of these steps; npm is a program that notes what it is asked for. */
async function runAgain(t: Teardown, { steps, outputs = {}, fails = [] }: Failed) {
  const folder = await scratchDirectory(t);
  const lines = Object.entries(steps).map(([name, status]) => `${name}: 12 s, status ${status}\n`);
  writeFileSync(join(folder, 'steps.txt'), lines.join(''));
  for (const [step, output] of Object.entries(outputs)) writeFileSync(join(folder, `${step}.out`), output);
  const asked = join(folder, 'asked');
  const failing = fails.map((words) => `[ "$*" = '${words}' ] && exit 1\n`).join('');
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\necho "$*" >>${asked}\n${failing}exit 0\n`);
  chmodSync(join(folder, 'npm'), 0o755);
  writeFileSync(asked, '');
  const { status, stdout } = spawnSync(process.execPath, ['scripts/run-again.mjs', folder], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${folder}:${process.env.PATH ?? ''}` },
  });
  const list = join(folder, 'unstable.txt');
  return {
    status,
    stdout,
    asked: readFileSync(asked, 'utf8').trim().split('\n'),
    unstable: existsSync(list) ? readFileSync(list, 'utf8') : null,
  };
}

const failedTest = (file: string) => `TAP version 14
not ok 1 - the ledger is empty
  ---
  diff: 1 is not 0
  ...
# ${file}: FAILED in 1.0 s
`;

test('nothing runs again where every step passed', async (t) => {
  const { status, asked, unstable } = await runAgain(t, { steps: { lint: 0, test: 0 } });
  t.equal(status, 0);
  t.same(asked, ['']);
  t.equal(unstable, null);
});

test('a file that passes alone is unstable, and the run is green', async (t) => {
  const output = `${failedTest('test/a.test.ts')}# failed: test/a.test.ts\n`;
  const { status, asked, unstable, stdout } = await runAgain(t, { steps: { test: 1 }, outputs: { test: output } });
  t.equal(status, 0);
  t.same(asked, ['test -- test/a.test.ts']);
  t.match(unstable, /^test: test\/a\.test\.ts\nnot ok 1 - the ledger is empty\n[^]*1 is not 0/u);
  t.match(stdout, /unstable: failed, and passed alone/u);
});

test('a file that fails twice is red, whatever its runner', async (t) => {
  const outputs = {
    'end-to-end': '# agent.e2e.js on Kubernetes 1.37\nnot ok 1 - starts\n# failed: agent.e2e.js on 1.37\n',
  };
  const again = 'run test:e2e -- --kubernetes 1.37 agent.e2e';
  const { status, asked, stdout } = await runAgain(t, { steps: { 'end-to-end': 1 }, outputs, fails: [again] });
  t.equal(status, 1);
  t.same(asked, [again]);
  t.match(stdout, /end-to-end: agent\.e2e\.js on 1\.37 failed twice/u);
});

test('two unstable files are green, three are red', async (t) => {
  for (const count of [2, 3]) {
    const files = Array.from({ length: count }, (_, at) => `test/${at}.test.ts`);
    const output = files.map((file) => `${failedTest(file)}# failed: ${file}\n`).join('');
    const { status, asked } = await runAgain(t, { steps: { test: 1 }, outputs: { test: output } });
    t.equal(status, count === 2 ? 0 : 1, `${count} files`);
    t.equal(asked.length, count);
  }
});

test('a step that fails as a whole, or in many files, is red at once', async (t) => {
  const lint = await runAgain(t, { steps: { lint: 1, test: 0 } });
  t.equal(lint.status, 1);
  t.match(lint.stdout, /lint failed, and not in a file/u);
  const files = Array.from({ length: 6 }, (_, at) => `# failed: test/${at}.test.ts\n`).join('');
  const many = await runAgain(t, { steps: { test: 1 }, outputs: { test: files } });
  t.equal(many.status, 1);
  t.same(many.asked, ['']);
});
