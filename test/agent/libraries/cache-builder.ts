import type { CacheEntry } from '../../../src/agent/libraries/ld-so-cache.js';

export interface CacheOptions {
  /** Puts the header and entries of glibc before 2.2 first. */
  readonly oldHeader?: boolean;
  /** Value of the endianness byte; 2 is little endian, 0 that of a glibc before 2.33. */
  readonly endianness?: number;
}

const FLAGS = {
  i386: 0x0003,
  'x86-64': 0x0303,
  ppc64le: 0x0503,
  x32: 0x0803,
  arm: 0x0903,
  aarch64: 0x0a03,
  other: 0x0603,
} as const;
const HEADER_BYTES = 48;
const ENTRY_BYTES = 24;

/** The bytes that ldconfig would write for these entries. */
export function buildLdSoCache(entries: readonly CacheEntry[], options: CacheOptions = {}): Buffer {
  const hardware = [
    ...new Set(
      entries.flatMap((entry) => (entry.hardware === null || entry.hardware === 'legacy' ? [] : [entry.hardware])),
    ),
  ];
  const stringsStart = HEADER_BYTES + entries.length * ENTRY_BYTES;
  const strings: Buffer[] = [];
  let end = stringsStart;
  const place = (text: string): number => {
    const at = end;
    strings.push(Buffer.from(`${text}\0`));
    end += Buffer.byteLength(text) + 1;
    return at;
  };

  const header = Buffer.alloc(HEADER_BYTES);
  header.write('glibc-ld.so.cache1.1', 0, 'latin1');
  header.writeUInt32LE(entries.length, 20);
  header.writeUInt8(options.endianness ?? 2, 28);
  const table = Buffer.alloc(entries.length * ENTRY_BYTES);
  entries.forEach((entry, index) => {
    const at = index * ENTRY_BYTES;
    table.writeUInt32LE(FLAGS[entry.architecture], at);
    table.writeUInt32LE(place(entry.name), at + 4);
    table.writeUInt32LE(place(entry.path), at + 8);
    if (entry.hardware === 'legacy') table.writeUInt32LE(1, at + 16);
    else if (entry.hardware !== null) {
      table.writeUInt32LE(hardware.indexOf(entry.hardware), at + 16);
      table.writeUInt32LE(0x4000_0000 + 3, at + 20);
    }
  });
  const hardwareOffsets = hardware.map(place);
  header.writeUInt32LE(end - stringsStart, 24);
  const body = [header, table, ...strings];
  if (hardware.length > 0) body.push(...extension(header, end, hardwareOffsets));
  const cache = Buffer.concat(body);
  return options.oldHeader === true ? Buffer.concat([oldFormat(entries.length), cache]) : cache;
}

function extension(header: Buffer, end: number, hardwareOffsets: readonly number[]): Buffer[] {
  const start = Math.ceil(end / 4) * 4;
  header.writeUInt32LE(start, 32);
  const list = start + 8 + 2 * 16;
  const directory = Buffer.alloc(8 + 2 * 16);
  // An empty generator string first, as glibc writes it there: the reader has to search for its tag.
  [0xeaa42174, 2, 0, 0, list, 0, 1, 0, list, hardwareOffsets.length * 4].forEach((value, index) =>
    directory.writeUInt32LE(value, index * 4),
  );
  const offsets = Buffer.alloc(hardwareOffsets.length * 4);
  hardwareOffsets.forEach((offset, index) => offsets.writeUInt32LE(offset, index * 4));
  return [Buffer.alloc(start - end), directory, offsets];
}

function oldFormat(entryCount: number): Buffer {
  const bytes = 16 + entryCount * 12;
  const old = Buffer.alloc(Math.ceil(bytes / 8) * 8);
  old.write('ld.so-1.7.0\0', 0, 'latin1');
  old.writeUInt32LE(entryCount, 12);
  return old;
}
