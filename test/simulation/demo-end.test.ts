import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { test } from 'tap';
import { MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';

test('Ctrl-C in the middle of the demonstration leaves no file behind', { timeout: timeLimit(120_000) }, async (t) => {
  // Sockets are below it, so that its path must be short.
  const TMPDIR = await mkdtemp('/tmp/de-');
  t.teardown(() => rm(TMPDIR, { recursive: true, force: true }));
  const demo = spawn(process.execPath, [MAIN, 'demo', '--once'], {
    env: { ...process.env, TMPDIR },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => demo.kill('SIGKILL'));
  for await (const line of createInterface({ input: demo.stdout })) if (line.startsWith('ok ')) break;
  demo.kill('SIGINT');
  const [code] = (await once(demo, 'exit')) as [number | null];
  t.equal(code, 130);
  t.same(await readdir(TMPDIR), []);
});

test('the demonstration ends by itself after its last step', { timeout: timeLimit(120_000) }, async (t) => {
  const TMPDIR = await mkdtemp('/tmp/de-');
  t.teardown(() => rm(TMPDIR, { recursive: true, force: true }));
  const demo = spawn(process.execPath, [MAIN, 'demo', '--once'], {
    env: { ...process.env, TMPDIR },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  t.teardown(() => demo.kill('SIGKILL'));
  const [code] = (await once(demo, 'exit')) as [number | null];
  t.not(code, null);
  t.same(await readdir(TMPDIR), []);
});
