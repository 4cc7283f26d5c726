import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import type { Outcome } from './random-pods.js';
import { timeLimit } from '../harness/time-factor.js';

const SEED = Number(process.env.GPU_MANAGER_SEED ?? 20_261);
const PROGRAM = fileURLToPath(new URL('random-pods-run.js', import.meta.url));

/** Tests so many admissions of pods that look alike, half of them known from the API server, half from the kubelet. */
export function testRandomAdmissions(admissions: number): void {
  tap.setTimeout(timeLimit(900_000));
  /** Each run is a program of its own that waits for its own node now and then. */
  tap.jobs = 2;
  testAdmissions(admissions / 2, true, { strayLimit: 0.03, lateLimit: 0 });
  testAdmissions(admissions / 2, false, { strayLimit: 0.1, lateLimit: 0.005 });
}

function testAdmissions(
  count: number,
  knowsPods: boolean,
  { strayLimit, lateLimit }: { readonly strayLimit: number; readonly lateLimit: number },
): void {
  const knowledge = knowsPods ? 'known from the API server' : 'known from the kubelet alone';
  const name = `${count} pods that look alike, ${knowledge}, in random orders (seed ${SEED}), get their own GPU, directory and limits`;
  void test(name, { timeout: timeLimit(900_000), buffered: true }, async (t) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      PROGRAM,
      knowsPods ? 'known' : 'unknown',
      String(count),
      String(SEED),
    ]);
    const { faults, strayShare, lateShare } = JSON.parse(stdout) as Outcome;
    t.same(faults, []);
    t.ok(lateShare <= lateLimit, `${(100 * lateShare).toFixed(2)} % are refused when they start`);
    t.ok(strayShare <= strayLimit, `${(100 * strayShare).toFixed(2)} % hold ids that stand for another GPU`);
  });
}
