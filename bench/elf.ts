import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import elfy from 'elfy';
import { readElfFile } from '../src/agent/libraries/elf-file.js';
import { parseLdSoCache } from '../src/agent/libraries/ld-so-cache.js';
import { measured, type BenchOptions } from './report.js';

const ROUNDS = 5;
const LARGEST = 40;

/**
 * Reading what a mirror needs from this machine's largest libraries, compared with reading the whole files with elfy
 * alone.
 */
export async function run({ report, note }: BenchOptions): Promise<void> {
  const cache = parseLdSoCache(readFileSync('/etc/ld.so.cache'));
  if (!cache.ok) {
    note(`skipped: /etc/ld.so.cache: ${cache.reason}`);
    return;
  }
  const bytesOf = new Map(
    [...new Set(cache.entries.map((entry) => entry.path))].map((path) => [
      path,
      statSync(path, { throwIfNoEntry: false })?.size ?? 0,
    ]),
  );
  const paths = [...bytesOf]
    .sort((a, b) => b[1] - a[1])
    .slice(0, LARGEST)
    .map(([path]) => path);
  const megabytes = paths.reduce((sum, path) => sum + (bytesOf.get(path) ?? 0), 0) / 1e6;
  note(
    `the ${paths.length} largest libraries in the cache: ${megabytes.toFixed(0)} MB in the page cache, best of ${ROUNDS} rounds`,
  );
  const whole = await best(paths, async (path) => void elfy.parse(await readFile(path)));
  const parts = await best(paths, async (path) => void (await readElfFile(path)));
  report(
    measured(
      'ELF facts of a library, from what is needed of the file',
      parts / paths.length,
      'ms',
      whole / paths.length,
    ),
  );
}

/** Milliseconds for all paths, one after the other, in the fastest round. */
async function best(paths: readonly string[], read: (path: string) => Promise<void>): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    for (const path of paths) await read(path);
    least = Math.min(least, performance.now() - start);
  }
  return least;
}
