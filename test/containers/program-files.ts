import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readElfFile } from '../../src/agent/libraries/elf-file.js';
import { parseLdSoCache } from '../../src/agent/libraries/ld-so-cache.js';
import type { ImageFile } from '../agent/runtimes/test-image.js';

const MACHINE =
  process.arch === 'arm64'
    ? { architecture: 'aarch64', directory: '/usr/lib/aarch64-linux-gnu', interpreter: '/lib/ld-linux-aarch64.so.1' }
    : { architecture: 'x86-64', directory: '/usr/lib/x86_64-linux-gnu', interpreter: '/lib64/ld-linux-x86-64.so.2' };

/** Architecture of the programs of this machine, and its library directory on Debian. */
export const { architecture: MACHINE_ARCHITECTURE, directory: MACHINE_LIBRARIES } = MACHINE as {
  architecture: 'x86-64' | 'aarch64';
  directory: string;
};

/**
 * The files that an image needs to run these programs and libraries: the dynamic linker, and every library of this
 * machine that they need, directly or through others. A library that is not found here is left out: the driver comes
 * from elsewhere.
 */
export async function filesNeededBy(paths: readonly string[]): Promise<ImageFile[]> {
  const cache = parseLdSoCache(readFileSync('/etc/ld.so.cache'));
  if (!cache.ok) throw new Error(cache.reason);
  const known = new Map(
    cache.entries
      .filter((entry) => entry.architecture === MACHINE.architecture)
      .map((entry) => [entry.name, entry.path]),
  );
  const files = new Map<string, ImageFile>([[MACHINE.interpreter, { from: MACHINE.interpreter }]]);
  const waiting = [...paths];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const elf = await readElfFile(path);
    if (!elf.ok) throw new Error(`${path}: ${elf.reason}`);
    for (const name of elf.value.needed) {
      const from = known.get(name);
      const to = join(MACHINE.directory, name);
      if (from === undefined || files.has(to) || MACHINE.interpreter.endsWith(name)) continue;
      files.set(to, { from, to });
      waiting.push(from);
    }
  }
  return [...files.values()];
}
