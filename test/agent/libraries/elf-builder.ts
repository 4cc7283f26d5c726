import type { Architecture } from '../../../src/agent/libraries/architecture.js';

export interface ElfDescription {
  readonly architecture?: Extract<Architecture, 'x86-64' | 'i386' | 'x32' | 'aarch64' | 'arm'>;
  readonly soname?: string;
  readonly needed?: readonly string[];
  /** Oldest Linux of the ABI tag, `[2, 3, 99]`; without it there is no such note. */
  readonly minimumLinux?: readonly [number, number, number];
  /** Names of the functions that a 64-bit library exports; its first byte is the code of each. */
  readonly exports?: readonly string[];
  /** Text that makes the bytes of one library differ from those of another. */
  readonly content?: string;
}

const MACHINES = { 'x86-64': 62, i386: 3, x32: 62, aarch64: 183, arm: 40 } as const;
const DYNAMIC = 6;
const NOTE = 7;
const STRTAB = 3;
const DYNSYM = 11;
const PROGBITS = 1;
const LOAD = 1;
const DYNAMIC_SEGMENT = 2;

interface Section {
  readonly name: string;
  readonly type: number;
  readonly link: number;
  readonly data: Buffer;
}

/**
 * A small shared library that readelf and ldconfig accept: header, one segment for the whole file and one for the
 * dynamic section, contents of the sections one after the other, section headers.
 */
export function buildElf(description: ElfDescription): Buffer {
  const { architecture = 'x86-64', soname, needed = [], minimumLinux, exports = [], content = '' } = description;
  const is64 = architecture === 'x86-64' || architecture === 'aarch64';
  const strings = new StringTable();
  const tags: [number, number][] = needed.map((name) => [1, strings.add(name)]);
  if (soname !== undefined) tags.push([14, strings.add(soname)]);
  const symbols = is64 ? symbolTable(exports.map((name) => strings.add(name))) : null;
  // Address and size of the string table, once they are known.
  tags.push([5, 0], [10, strings.bytes().length], [0, 0]);
  const strtabTag = tags.length - 3;

  const names = new StringTable();
  const sections: Section[] = [
    { name: '', type: 0, link: 0, data: Buffer.alloc(0) },
    ...(minimumLinux === undefined ? [] : [{ name: '.note.ABI-tag', type: NOTE, link: 0, data: abiTag(minimumLinux) }]),
    { name: '.text', type: PROGBITS, link: 0, data: Buffer.from(content) },
  ];
  sections.push({ name: '.dynstr', type: STRTAB, link: 0, data: strings.bytes() });
  const dynstr = sections.length - 1;
  if (symbols !== null) sections.push({ name: '.dynsym', type: DYNSYM, link: dynstr, data: symbols });
  const dynamic = Buffer.concat(tags.map(([tag, value]) => words(is64, [tag, value])));
  sections.push({ name: '.dynamic', type: DYNAMIC, link: dynstr, data: dynamic });
  const dynamicAt = sections.length - 1;
  for (const section of sections) names.add(section.name);
  names.add('.shstrtab');
  sections.push({ name: '.shstrtab', type: STRTAB, link: 0, data: names.bytes() });

  const headerBytes = is64 ? 64 : 52;
  let end = headerBytes + 2 * (is64 ? 56 : 32);
  const offsets = sections.map((section) => {
    const at = Math.ceil(end / 8) * 8;
    end = at + section.data.length;
    return at;
  });
  dynamic.writeUInt32LE(offsets[dynstr] ?? 0, strtabTag * (is64 ? 16 : 8) + (is64 ? 8 : 4));
  const sectionHeaders = Math.ceil(end / 8) * 8;
  const entryBytes = is64 ? 64 : 40;
  const file = Buffer.alloc(sectionHeaders + sections.length * entryBytes);
  elfHeader(is64, MACHINES[architecture], sectionHeaders, sections.length).copy(file);
  segment(is64, LOAD, 0, file.length).copy(file, headerBytes);
  segment(is64, DYNAMIC_SEGMENT, offsets[dynamicAt] ?? 0, dynamic.length).copy(file, headerBytes + (is64 ? 56 : 32));
  sections.forEach((section, index) => {
    const offset = offsets[index] ?? 0;
    section.data.copy(file, offset);
    sectionHeader(is64, names.add(section.name), section, offset).copy(file, sectionHeaders + index * entryBytes);
  });
  return file;
}

class StringTable {
  readonly #offsets = new Map<string, number>([['', 0]]);
  #text = '\0';

  add(name: string): number {
    const known = this.#offsets.get(name);
    if (known !== undefined) return known;
    const offset = Buffer.byteLength(this.#text);
    this.#offsets.set(name, offset);
    this.#text += `${name}\0`;
    return offset;
  }

  bytes(): Buffer {
    return Buffer.from(this.#text);
  }
}

function words(is64: boolean, values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * (is64 ? 8 : 4));
  values.forEach((value, index) => bytes.writeUInt32LE(value, index * (is64 ? 8 : 4)));
  return bytes;
}

/** Elf64_Sym of functions with these names: the empty first entry, then global functions at address 1 of section 1. */
function symbolTable(names: readonly number[]): Buffer {
  const table = Buffer.alloc((names.length + 1) * 24);
  names.forEach((name, index) => {
    const at = (index + 1) * 24;
    table.writeUInt32LE(name, at);
    table.writeUInt8(0x12, at + 4);
    table.writeUInt16LE(1, at + 6);
    table.writeUInt32LE(1, at + 8);
  });
  return table;
}

function abiTag(version: readonly [number, number, number]): Buffer {
  const note = Buffer.alloc(32);
  [4, 16, 1].forEach((value, index) => note.writeUInt32LE(value, index * 4));
  note.write('GNU\0', 12, 'latin1');
  [0, ...version].forEach((value, index) => note.writeUInt32LE(value, 16 + index * 4));
  return note;
}

function elfHeader(is64: boolean, machine: number, sectionHeaders: number, sectionCount: number): Buffer {
  const header = Buffer.alloc(is64 ? 64 : 52);
  header.write('\x7fELF', 0, 'latin1');
  header.writeUInt8(is64 ? 2 : 1, 4);
  header.writeUInt8(1, 5);
  header.writeUInt8(1, 6);
  header.writeUInt16LE(3, 16);
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(is64 ? 64 : 52, is64 ? 32 : 28);
  header.writeUInt32LE(sectionHeaders, is64 ? 40 : 32);
  const halves = is64
    ? [64, 56, 2, 64, sectionCount, sectionCount - 1]
    : [52, 32, 2, 40, sectionCount, sectionCount - 1];
  halves.forEach((value, index) => header.writeUInt16LE(value, (is64 ? 52 : 40) + index * 2));
  return header;
}

/** A readable segment whose addresses are its offsets in the file. */
function segment(is64: boolean, type: number, offset: number, length: number): Buffer {
  if (!is64) return words(false, [type, offset, offset, offset, length, length, 4, 0x1000]);
  return Buffer.concat([words(false, [type, 4]), words(true, [offset, offset, offset, length, length, 0x1000])]);
}

function sectionHeader(is64: boolean, name: number, section: Section, offset: number): Buffer {
  const entry = Buffer.alloc(is64 ? 64 : 40);
  entry.writeUInt32LE(name, 0);
  entry.writeUInt32LE(section.type, 4);
  if (section.type === DYNAMIC || section.type === STRTAB) entry.writeUInt32LE(offset, is64 ? 16 : 12);
  entry.writeUInt32LE(offset, is64 ? 24 : 16);
  entry.writeUInt32LE(section.data.length, is64 ? 32 : 20);
  entry.writeUInt32LE(section.link, is64 ? 40 : 24);
  const entrySize = section.type === DYNAMIC ? (is64 ? 16 : 8) : section.type === DYNSYM ? 24 : 0;
  entry.writeUInt32LE(entrySize, is64 ? 56 : 36);
  return entry;
}
