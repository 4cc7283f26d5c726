import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { openEndlessInput } from '../../src/host/endless-input.js';
import { scratchDirectory } from '../scratch.js';

test('the input of a program does not end with the process that opened it', async (t) => {
  const path = join(await scratchDirectory(t), 'input');
  writeFileSync(path, 'a file that is in the way');
  const input = openEndlessInput(path);
  const child = spawn('cat', { stdio: [input, 'pipe', 'inherit'] });
  t.teardown(() => child.kill());
  closeSync(input);
  t.equal(statSync(path).mode & 0o777, 0o600);
  for (const line of ['one\n', 'two\n']) {
    // Each writer closes the pipe again, which ends the input of a program that does not hold it open itself.
    writeFileSync(path, line);
    const [read] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as readonly Buffer[];
    t.equal(String(read), line);
  }
  closeSync(openEndlessInput(path));
  t.equal(child.exitCode, null, 'opened again, as by the next agent');
});
