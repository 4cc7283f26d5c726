import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { packageFile } from '../../src/host/package-files.js';
import { scratchDirectory } from '../scratch.js';

const noCache = Number(process.versions.node.split('.')[0]) >= 24 ? false : 'needs Node 24, as in the image';
const MAIN = 'dist/src/cli/main.js';

/** What the Dockerfile sets, below `root`. */
function imageEnvironment(root: string): Record<string, string> {
  const [, variables = ''] =
    /^ENV (NODE_COMPILE_CACHE=.*)$/mu.exec(readFileSync(packageFile('Dockerfile'), 'utf8')) ?? [];
  return Object.fromEntries(
    variables.split(' ').map((pair) => {
      const [name = '', value = ''] = pair.split('=');
      return [name, value.startsWith('/') ? join(root, value) : value];
    }),
  );
}

test('the agent of the image runs the code that was compiled when the image was made', { skip: noCache }, async (t) => {
  const scratch = await scratchDirectory(t);
  const home = join(scratch, 'build/usr/lib/gpu-manager');
  execFileSync(process.execPath, [packageFile('scripts/bundle.mjs'), home]);
  execFileSync(process.execPath, [packageFile('scripts/compile-cache.mjs'), home]);
  renameSync(join(scratch, 'build'), join(scratch, 'image'));

  const root = join(scratch, 'image');
  const moved = join(root, 'usr/lib/gpu-manager');
  const stored = readdirSync(join(moved, 'compile-cache'), { recursive: true });
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(moved, MAIN), 'run', '--help'], {
    encoding: 'utf8',
    env: { ...process.env, ...imageEnvironment(root), NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
  });
  t.equal(status, 0);
  const log = stdout + stderr;
  const accepted = log.match(/V8 code cache for ESM \S+ was accepted/gu) ?? [];
  t.ok(accepted.length >= 5, `${accepted.length} files`);
  t.notMatch(log, /was rejected/u);
  t.same(readdirSync(join(moved, 'compile-cache'), { recursive: true }), stored, 'nothing was missing');
});
