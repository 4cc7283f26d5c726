import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import type { Outcome } from './random-pods.js';
import { timeLimit } from '../harness/time-factor.js';

tap.setTimeout(timeLimit(900_000));
/** Each run is a program of its own that waits for its own node now and then. */
tap.jobs = 2;

const ADMISSIONS = Number(process.env.GPU_MANAGER_ADMISSIONS ?? 800);
const SEED = Number(process.env.GPU_MANAGER_SEED ?? 20_261);
const PROGRAM = fileURLToPath(new URL('random-pods-run.js', import.meta.url));

for (const { knowsPods, seed, strayLimit, lateLimit } of [
  { knowsPods: true, seed: SEED, strayLimit: 0.03, lateLimit: 0 },
  { knowsPods: false, seed: SEED, strayLimit: 0.1, lateLimit: 0.005 },
]) {
  const count = ADMISSIONS / 2;
  const knowledge = knowsPods ? 'known from the API server' : 'known from the kubelet alone';
  const name = `${count} pods that look alike, ${knowledge}, in random orders (seed ${seed}), get their own GPU, directory and limits`;
  void test(name, { timeout: timeLimit(900_000), buffered: true }, async (t) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      PROGRAM,
      knowsPods ? 'known' : 'unknown',
      String(count),
      String(seed),
    ]);
    const { faults, strayShare, lateShare } = JSON.parse(stdout) as Outcome;
    t.same(faults, []);
    t.ok(lateShare <= lateLimit, `${(100 * lateShare).toFixed(2)} % are refused when they start`);
    t.ok(strayShare <= strayLimit, `${(100 * strayShare).toFixed(2)} % hold ids that stand for another GPU`);
  });
}
