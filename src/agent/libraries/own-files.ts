import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { readElfFile, readExports } from './elf-file.js';
import type { HostFile } from './inventory.js';
import type { ControlLibrary } from './mirror-plan.js';

/** Describes one of this project's files by its content: two builds of an image may give it equal time and size. */
export async function describeOwnFile(path: string): Promise<HostFile> {
  const bytes = await readFile(path);
  return { fileName: basename(path), path, identity: createHash('sha256').update(bytes).digest('hex') };
}

/**
 * Describes a control library by its own data: its SONAME equals the SONAME of the interposed library, and the first
 * `lib*-origin.so.*` that it needs is the name of the driver's library. Rejects for any other file.
 */
export async function describeControlLibrary(path: string): Promise<ControlLibrary> {
  const elf = await readElfFile(path);
  if (!elf.ok) throw new Error(`${path}: ${elf.reason}`);
  const { soname, needed, architecture } = elf.value;
  const originName = needed.find((name) => /-origin\.so/.test(name));
  if (soname === null || originName === undefined)
    throw new Error(
      `${path} is not a control library: it has the SONAME ${soname ?? '(none)'} and needs ${needed.join(', ')}`,
    );
  const exports = await readExports(path);
  if (!exports.ok) throw new Error(`${path}: ${exports.reason}`);
  return { ...(await describeOwnFile(path)), soname, originName, architecture, exports: exports.value };
}
