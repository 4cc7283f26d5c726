import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import tap, { test } from 'tap';
import { timeLimit } from '../harness/time-factor.js';

const native = fileURLToPath(new URL('../../../native/', import.meta.url));

/** One line of the runner's TAP: `ok 3 - name: sentence # SKIP reason`. */
const RESULT = /^(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$/;

const LIMIT_MS = timeLimit(1_800_000);

/** Builds and runs those C tests that the arguments of `make test` select, each as an assertion of this file. */
export function testPrograms(title: string, selection: readonly string[]): void {
  const missing = ['make', 'cc'].filter((tool) => spawnSync(tool, ['--version']).error !== undefined);
  const skip = missing.length > 0 ? `not installed: ${missing.join(', ')}` : false;
  tap.setTimeout(LIMIT_MS);
  void test(title, { skip, timeout: LIMIT_MS }, (t) => {
    const run = spawnSync('make', ['--silent', '-C', native, 'test', ...selection], {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
      env: { ...process.env, TEST_JOBS: '2', TEST_TIMEOUT: String(timeLimit(300)) },
    });
    const blocks = run.stdout.split(/^(?=(?:not )?ok )/m);
    let results = 0;
    for (const block of blocks) {
      const match = RESULT.exec(block.split('\n')[0] ?? '');
      if (!match) continue;
      const [, failed, sentence = '', reason] = match;
      results += 1;
      if (reason !== undefined) t.pass(sentence, { skip: reason });
      else if (failed === undefined) t.pass(sentence);
      else t.fail(sentence, { output: block });
    }
    t.ok(results > 0, 'the runner reports results', { errors: run.stderr });
    t.equal(run.status, 0, 'every C test passes', { errors: run.stderr });
    t.end();
  });
}
