import koffi from 'koffi';
import { closeSync, constants, openSync, readFileSync } from 'node:fs';

// mmap(2): numbers of Linux, the same on every architecture.
const PROT_READ = 1;
const MAP_PRIVATE = 2;

/**
 * A file as /proc/<pid>/maps identifies it: device and inode. They can differ from stat's, since some file systems have
 * separate numbers for stat.
 */
export type MappedFile = string;

const LINE = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+:[0-9a-f]+) (\d+)/;

/** The files in the text of a `/proc/<pid>/maps`. */
export function mappedFiles(maps: string): Set<MappedFile> {
  const files = new Set<MappedFile>();
  for (const line of maps.split('\n')) {
    const [, device, inode] = LINE.exec(line) ?? [];
    if (device !== undefined && inode !== undefined && inode !== '0') files.add(`${device} ${inode}`);
  }
  return files;
}

interface Calls {
  mmap(address: null, length: number, protection: number, flags: number, fd: number, offset: number): number | bigint;
  munmap(address: bigint, length: number): number;
}

let bound: Calls | null = null;

function calls(): Calls {
  if (bound === null) {
    const library = koffi.load('libc.so.6');
    bound = {
      mmap: library.func(
        'intptr_t mmap(void *address, size_t length, int protection, int flags, int fd, int64_t offset)',
      ) as Calls['mmap'],
      munmap: library.func('int munmap(intptr_t address, size_t length)') as Calls['munmap'],
    };
  }
  return bound;
}

/**
 * The identity of this file in maps, found by mapping it for a moment; null if that fails. Throws if it cannot be
 * opened at once.
 */
export function mappedNameOf(path: string): MappedFile | null {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const address = BigInt(calls().mmap(null, 1, PROT_READ, MAP_PRIVATE, fd, 0));
    if (address === -1n) return null;
    const start = address.toString(16).padStart(8, '0');
    const lines = readFileSync('/proc/self/maps', 'latin1').split('\n');
    calls().munmap(address, 1);
    const [name] = mappedFiles(lines.find((line) => line.startsWith(`${start}-`)) ?? '');
    return name ?? null;
  } finally {
    closeSync(fd);
  }
}
