import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../../scratch.js';

const SWITCHER = fileURLToPath(new URL('./mirror-switcher.js', import.meta.url));

test('a process that is killed while it switches between two drivers always leaves one of them complete', async (t) => {
  const scratch = await scratchDirectory(t);
  const directory = join(scratch, 'nvidia');
  for (let round = 0; round < 8; round += 1) {
    const child = spawn(process.execPath, [SWITCHER, scratch], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await new Promise((resolve) => setTimeout(resolve, 3 + 7 * round));
    child.kill('SIGKILL');
    await once(child, 'exit');
    t.ok(existsSync(join(directory, 'current')));
    const names = readdirSync(join(directory, 'current/lib64'));
    const driver = /535|580/.exec(names.join())?.[0] ?? '';
    t.equal(names.length, 40, `all files of ${driver} exist`);
    t.ok(names.every((name) => readFileSync(join(directory, 'current/lib64', name), 'utf8') === `driver ${driver}`));
  }
});
