import type { Architecture } from './architecture.js';

/** One line of `ldconfig -p`. */
export interface CacheEntry {
  /** File name that programs load, nearly always the SONAME. */
  readonly name: string;
  /** Absolute path on the cache's machine. */
  readonly path: string;
  readonly architecture: Architecture;
  /** Subdirectory of glibc-hwcaps that has the library (`x86-64-v3`); null if every machine may load it. */
  readonly hardware: string | null;
}

export type CacheRefusal = 'truncated' | 'unknown-format' | 'big-endian' | 'bad-offset';

export type CacheResult =
  | { readonly ok: true; readonly entries: readonly CacheEntry[] }
  | { readonly ok: false; readonly code: CacheRefusal; readonly reason: string };

// The layout is glibc's sysdeps/generic/dl-cache.h: an optional old header, then the new one, whose entries count
// string offsets from the new header's first byte.
const OLD_MAGIC = 'ld.so-1.7.0\0';
const OLD_HEADER_BYTES = 16;
const OLD_ENTRY_BYTES = 12;
const NEW_MAGIC = 'glibc-ld.so.cache1.1';
const NEW_HEADER_BYTES = 48;
const NEW_ENTRY_BYTES = 24;
const NEW_ALIGNMENT = 8;
const EXTENSION_MAGIC = 0xeaa42174;
const EXTENSION_SECTION_BYTES = 16;
const EXTENSION_TAG_HWCAPS = 1;

/** Low byte of an entry's flags: 1 ELF, 3 ELF for glibc 2; other values are obsolete formats. */
const ELF_TYPES = new Set([1, 3]);
const ARCHITECTURE_OF_FLAGS: ReadonlyMap<number, Architecture> = new Map([
  [0x0000, 'i386'],
  [0x0300, 'x86-64'],
  [0x0500, 'ppc64le'],
  [0x0800, 'x32'],
  [0x0900, 'arm'],
  [0x0a00, 'aarch64'],
  [0x0b00, 'arm'],
]);

/**
 * If bit 62 of an entry's hwcap word is set, the low half is an index of the hwcaps strings; the ten bits from 32 up
 * are an ISA level.
 */
const HWCAP_EXTENSION_HIGH = 0x4000_0000;
const HWCAP_ISA_LEVEL_MASK = 0x3ff;

/** Longer names and paths do not exist on Linux (PATH_MAX). */
const MAX_STRING = 4096;
/** glibc has a handful of them; the bound limits memory for an invalid file. */
const MAX_HARDWARE_NAMES = 256;

class UnreadableCache extends Error {
  constructor(
    readonly code: CacheRefusal,
    reason: string,
  ) {
    super(reason);
  }
}

/**
 * Reads an `/etc/ld.so.cache` in the new format (glibc 2.2 and later), with or without the old header before it.
 * Entries keep their order, in which the dynamic linker tries them. Entries that are not ELF libraries are left out; a
 * cache with one impossible offset is refused as a whole, since its other offsets cannot be trusted.
 */
export function parseLdSoCache(bytes: Buffer): CacheResult {
  try {
    return { ok: true, entries: readEntries(afterOldHeader(bytes)) };
  } catch (error) {
    if (error instanceof UnreadableCache) return { ok: false, code: error.code, reason: error.message };
    throw error;
  }
}

/** The bytes from the new header on. */
function afterOldHeader(bytes: Buffer): Buffer {
  if (!startsWith(bytes, OLD_MAGIC)) return bytes;
  if (bytes.length < OLD_HEADER_BYTES) throw new UnreadableCache('truncated', 'the old header ends early');
  const end = OLD_HEADER_BYTES + bytes.readUInt32LE(12) * OLD_ENTRY_BYTES;
  const start = Math.ceil(end / NEW_ALIGNMENT) * NEW_ALIGNMENT;
  if (start > bytes.length) throw new UnreadableCache('truncated', 'the entries of the old format end early');
  return bytes.subarray(start);
}

function readEntries(cache: Buffer): CacheEntry[] {
  if (!startsWith(cache, NEW_MAGIC))
    throw new UnreadableCache('unknown-format', 'no header of a glibc cache of version 1.1');
  if (cache.length < NEW_HEADER_BYTES) throw new UnreadableCache('truncated', 'the header ends early');
  // 0: glibc before 2.33, which wrote no byte order; 2: little endian.
  const endianness = cache.readUInt8(28) & 3;
  if (endianness !== 0 && endianness !== 2)
    throw new UnreadableCache('big-endian', 'the cache was written for another byte order');
  const count = cache.readUInt32LE(20);
  if (NEW_HEADER_BYTES + count * NEW_ENTRY_BYTES > cache.length)
    throw new UnreadableCache('truncated', `${count} entries do not fit into ${cache.length} bytes`);

  const hardwareNames = readHardwareNames(cache);
  const entries: CacheEntry[] = [];
  for (let at = NEW_HEADER_BYTES; at < NEW_HEADER_BYTES + count * NEW_ENTRY_BYTES; at += NEW_ENTRY_BYTES) {
    const flags = cache.readUInt32LE(at);
    const name = stringAt(cache, cache.readUInt32LE(at + 4));
    const path = stringAt(cache, cache.readUInt32LE(at + 8));
    if (!ELF_TYPES.has(flags & 0xff)) continue;
    const architecture = ARCHITECTURE_OF_FLAGS.get(flags & 0xff00) ?? 'other';
    entries.push({
      name,
      path,
      architecture,
      hardware: hardwareOf(cache.readUInt32LE(at + 16), cache.readUInt32LE(at + 20), hardwareNames),
    });
  }
  return entries;
}

function hardwareOf(low: number, high: number, names: readonly string[]): string | null {
  if (low === 0 && high === 0) return null;
  const isExtension = (high & ~HWCAP_ISA_LEVEL_MASK) >>> 0 === HWCAP_EXTENSION_HIGH;
  // Before glibc 2.33 the word was a mask of processor features of a legacy subdirectory (`tls`, `haswell`).
  if (!isExtension) return 'legacy';
  const name = names[low];
  if (name === undefined) throw new UnreadableCache('bad-offset', `an entry names hardware ${low} of ${names.length}`);
  return name;
}

/** Strings of the extension section that glibc-hwcaps entries index; empty in caches of glibc before 2.33. */
function readHardwareNames(cache: Buffer): string[] {
  const extension = cache.readUInt32LE(32);
  if (extension === 0) return [];
  if (extension + 8 > cache.length) throw new UnreadableCache('bad-offset', 'the extension lies behind the end');
  if (cache.readUInt32LE(extension) !== EXTENSION_MAGIC)
    throw new UnreadableCache('unknown-format', 'the extension has another magic number');
  const sections = cache.readUInt32LE(extension + 4);
  if (extension + 8 + sections * EXTENSION_SECTION_BYTES > cache.length)
    throw new UnreadableCache('truncated', 'the extension ends early');
  for (let index = 0; index < sections; index += 1) {
    const section = extension + 8 + index * EXTENSION_SECTION_BYTES;
    if (cache.readUInt32LE(section) !== EXTENSION_TAG_HWCAPS) continue;
    const start = cache.readUInt32LE(section + 8);
    const bytes = cache.readUInt32LE(section + 12);
    if (start + bytes > cache.length || bytes % 4 !== 0)
      throw new UnreadableCache('bad-offset', 'the list of hardware names lies behind the end');
    if (bytes > MAX_HARDWARE_NAMES * 4) throw new UnreadableCache('bad-offset', `${bytes / 4} hardware names`);
    return Array.from({ length: bytes / 4 }, (_, name) => stringAt(cache, cache.readUInt32LE(start + name * 4)));
  }
  return [];
}

function stringAt(cache: Buffer, offset: number): string {
  if (offset >= cache.length) throw new UnreadableCache('bad-offset', `a string lies at ${offset}, behind the end`);
  const end = cache.indexOf(0, offset);
  if (end < 0 || end - offset > MAX_STRING)
    throw new UnreadableCache('bad-offset', `the string at ${offset} has no end`);
  return cache.toString('utf8', offset, end);
}

function startsWith(bytes: Buffer, text: string): boolean {
  return bytes.length >= text.length && bytes.toString('latin1', 0, text.length) === text;
}
