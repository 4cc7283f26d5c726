import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measured, type BenchOptions } from './report.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HOME = 'usr/lib/gpu-manager';
const MAIN = 'dist/src/cli/main.js';
const STARTS = 9;
const MIB = 2 ** 20;

/**
 * The size of an image of this project, and the start time of a command in it: from the bundle, and from the modules as
 * they were compiled. The baseline of sizes is Node's own executable, that of starts is `node -e 0`.
 *
 *     npm run bench -- image
 */
export async function run({ report }: BenchOptions): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'gm-image-'));
  try {
    const root = join(scratch, 'root');
    execFileSync(join(ROOT, 'scripts/image-rootfs'), [root], { stdio: 'ignore' });
    const node = sizeOf(join(root, 'usr/bin/node'));
    report(measured('image: root file system', sizeOf(root) / MIB, 'MiB', node / MIB));
    report(measured('image: all of ours', sizeOf(join(root, HOME)) / MIB, 'MiB', node / MIB));
    report(measured('image: JavaScript', sizeOf(join(root, HOME, 'dist')) / MIB, 'MiB', node / MIB));
    report(
      measured(
        'image: control libraries, client, simulated driver',
        sizeOf(join(root, HOME, 'native')) / MIB,
        'MiB',
        node / MIB,
      ),
    );

    const bare = medianStartMs(['-e', '0']);
    report(
      measured('start of a command, from the bundle', medianStartMs([join(root, HOME, MAIN), '--version']), 'ms', bare),
    );
    report(
      measured('start of a command, from its modules', medianStartMs([join(ROOT, MAIN), '--version']), 'ms', bare),
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Bytes of a file, or of all files below a folder; links count as zero. */
function sizeOf(path: string): number {
  const status = lstatSync(path);
  if (status.isFile()) return status.size;
  if (!status.isDirectory()) return 0;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

function medianStartMs(args: readonly string[]): number {
  const times = Array.from({ length: STARTS }, () => {
    const before = performance.now();
    const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
    if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
    return performance.now() - before;
  });
  return times.sort((a, b) => a - b)[(STARTS - 1) / 2] ?? NaN;
}
