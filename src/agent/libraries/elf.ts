import elfy from 'elfy';
import type { Architecture } from './architecture.js';

/** The facts about a program or library that a mirror needs. */
export interface ElfFacts {
  readonly architecture: Architecture;
  /** Name under which the dynamic linker finds the library; null for programs and plugins without one. */
  readonly soname: string | null;
  /** Names of the libraries that it needs, in order. */
  readonly needed: readonly string[];
  readonly notes: readonly ElfNote[];
}

export interface ElfNote {
  /** Such as `GNU` for notes of the GNU tools. */
  readonly owner: string;
  readonly type: number;
  readonly description: Buffer;
}

export type ElfRefusal = 'not-elf' | 'truncated' | 'unsupported' | 'broken';

export type ElfResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: ElfRefusal; readonly reason: string };

/** A range of a file, in bytes. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

/** Enough for both classes of ELF header, and the size of the first read. */
export const ELF_HEADER_BYTES = 64;

// Bounds for invalid files: the largest libraries of a driver have 40 sections, 60 needed libraries and names of 60
// bytes.
const MAX_SECTIONS = 1024;
const MAX_SEGMENTS = 256;
const MAX_NAME_TABLE = 65_536;
const MAX_DYNAMIC = 65_536;
const MAX_STRING_TABLE = 64 * 1024 * 1024;
const MAX_NOTE = 65_536;
const MAX_NAME = 1024;

const DT_NULL = 0;
const DT_NEEDED = 1;
const DT_SONAME = 14;

const GNU_ABI_TAG = 1;
const ABI_OS_LINUX = 0;

interface Layout {
  readonly is64: boolean;
  /** Program and section header tables, in bytes; empty ones have length 0. */
  readonly programs: Span;
  readonly sections: Span;
  readonly nameTableIndex: number;
}

/**
 * The ranges that must be in memory before {@link contentSpans} is called, from the first {@link ELF_HEADER_BYTES} of a
 * file of `fileBytes`: with these two functions some ten kilobytes of a 100 MB file suffice.
 */
export function tableSpans(header: Buffer, fileBytes: number): ElfResult<readonly Span[]> {
  const layout = readLayout(header, fileBytes);
  return layout.ok
    ? { ok: true, value: [layout.value.programs, layout.value.sections].filter((span) => span.length > 0) }
    : layout;
}

/**
 * The ranges that {@link readElf} reads, from an image of the file in which only header and tables need to be filled
 * in.
 */
export function contentSpans(image: Buffer): ElfResult<readonly Span[]> {
  const parsed = parseSections(image);
  if (!parsed.ok) return parsed;
  const { sections } = parsed.value;
  const spans: Span[] = [];
  for (const section of sections) {
    if (section.type !== 'dynamic' && section.type !== 'note') continue;
    spans.push({ offset: section.off, length: section.size });
    const strings = section.type === 'dynamic' ? sections[section.link] : undefined;
    if (strings !== undefined) spans.push({ offset: strings.off, length: strings.size });
  }
  return { ok: true, value: spans };
}

/**
 * Reads architecture, SONAME, NEEDED and notes from the bytes of an ELF file (System V ABI, chapter 5). elfy reads the
 * sections; a file without section headers is refused, since elfy cannot read it.
 */
export function readElf(image: Buffer): ElfResult<ElfFacts> {
  const parsed = parseSections(image);
  if (!parsed.ok) return parsed;
  const { architecture, is64, sections } = parsed.value;
  const names = readDynamicNames(sections, is64);
  if (!names.ok) return names;
  const notes: ElfNote[] = [];
  for (const section of sections) {
    if (section.type === 'note') notes.push(...readNotes(section.data));
  }
  return { ok: true, value: { architecture, ...names.value, notes } };
}

/** The oldest Linux that the file runs on (`NT_GNU_ABI_TAG`), such as `[2, 3, 99]`; null without such a note. */
export function minimumLinux(facts: ElfFacts): readonly [number, number, number] | null {
  const tag = facts.notes.find(
    (note) => note.owner === 'GNU' && note.type === GNU_ABI_TAG && note.description.length >= 16,
  );
  if (tag === undefined || tag.description.readUInt32LE(0) !== ABI_OS_LINUX) return null;
  return [tag.description.readUInt32LE(4), tag.description.readUInt32LE(8), tag.description.readUInt32LE(12)];
}

const refuse = (code: ElfRefusal, reason: string) => ({ ok: false, code, reason }) as const;

/** Checks values that elfy would use unchecked: counts, entry sizes and offsets that could make it run for long. */
function readLayout(header: Buffer, fileBytes: number): ElfResult<Layout> {
  if (header.length < 4 || header.toString('latin1', 0, 4) !== '\x7fELF')
    return refuse('not-elf', 'the magic number is missing');
  if (header.length < 52) return refuse('truncated', 'the header ends early');
  const is64 = header[4] === 2;
  if (!is64 && header[4] !== 1) return refuse('unsupported', `ELF class ${header.readUInt8(4)}`);
  if (header[5] !== 1) return refuse('unsupported', 'not little endian');
  if (is64 && header.length < ELF_HEADER_BYTES) return refuse('truncated', 'the header ends early');

  const offset = (at32: number, at64: number) =>
    is64 ? header.readUInt32LE(at64) + header.readUInt32LE(at64 + 4) * 2 ** 32 : header.readUInt32LE(at32);
  const [programEntry, programCount, sectionEntry, sectionCount, nameTableIndex] = [0, 2, 4, 6, 8].map((field) =>
    header.readUInt16LE((is64 ? 54 : 42) + field),
  ) as [number, number, number, number, number];
  if (sectionCount === 0) return refuse('unsupported', 'it has no section headers');
  if (sectionCount > MAX_SECTIONS || programCount > MAX_SEGMENTS)
    return refuse('unsupported', `${sectionCount} sections and ${programCount} segments`);
  if (sectionEntry !== (is64 ? 64 : 40) || (programCount > 0 && programEntry !== (is64 ? 56 : 32)))
    return refuse('broken', 'the tables have entries of an unknown size');
  if (nameTableIndex >= sectionCount) return refuse('broken', 'the section of section names does not exist');
  const programs = { offset: offset(28, 32), length: programCount * programEntry };
  const sections = { offset: offset(32, 40), length: sectionCount * sectionEntry };
  for (const table of [programs, sections]) {
    if (table.length > 0 && table.offset + table.length > fileBytes)
      return refuse('truncated', 'a table lies behind the end of the file');
  }
  return { ok: true, value: { is64, programs, sections, nameTableIndex } };
}

interface ParsedSections {
  readonly architecture: Architecture;
  readonly is64: boolean;
  readonly sections: readonly elfy.Section[];
}

/** The section headers of an image in which header and tables are filled in, and their data where that is. */
export function parseSections(image: Buffer): ElfResult<ParsedSections> {
  const layout = readLayout(image.subarray(0, ELF_HEADER_BYTES), image.length);
  if (!layout.ok) return layout;
  const { is64, nameTableIndex } = layout.value;
  const nameTable = layout.value.sections.offset + nameTableIndex * (is64 ? 64 : 40);
  const nameTableBytes = is64
    ? image.readUInt32LE(nameTable + 32) + image.readUInt32LE(nameTable + 36) * 2 ** 32
    : image.readUInt32LE(nameTable + 20);
  // elfy searches each section's name from its offset to the next NUL. This bound limits the search in a table of
  // zeros.
  if (nameTableBytes > MAX_NAME_TABLE)
    return refuse('unsupported', `the table of section names has ${nameTableBytes} bytes`);
  try {
    const elf = elfy.parse(image);
    return checkSections({ architecture: architectureOf(elf), is64, sections: elf.body.sections }, image.length);
  } catch (error) {
    return refuse('broken', `elfy cannot read it: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function checkSections(parsed: ParsedSections, fileBytes: number): ElfResult<ParsedSections> {
  for (const section of parsed.sections) {
    if (section.type !== 'dynamic' && section.type !== 'note') continue;
    if (section.off + section.size > fileBytes)
      return refuse('truncated', `a ${section.type} section lies behind the end of the file`);
    if (section.size > (section.type === 'note' ? MAX_NOTE : MAX_DYNAMIC))
      return refuse('unsupported', `a ${section.type} section of ${section.size} bytes`);
    if (section.type === 'note') continue;
    const strings = parsed.sections[section.link];
    if (strings?.type !== 'strtab') return refuse('broken', 'the dynamic section has no string table');
    if (strings.off + strings.size > fileBytes)
      return refuse('truncated', 'the string table lies behind the end of the file');
    if (strings.size > MAX_STRING_TABLE) return refuse('unsupported', `a string table of ${strings.size} bytes`);
  }
  return { ok: true, value: parsed };
}

function architectureOf(elf: elfy.Elf): Architecture {
  const is64 = elf.class === '64';
  switch (elf.machine) {
    case 'amd64':
      return is64 ? 'x86-64' : 'x32';
    case '386':
      return is64 ? 'other' : 'i386';
    case 'AArch64':
      return is64 ? 'aarch64' : 'other';
    case 'arm':
      return is64 ? 'other' : 'arm';
    case 'ppc64':
      return is64 ? 'ppc64le' : 'other';
    default:
      return 'other';
  }
}

function readDynamicNames(
  sections: readonly elfy.Section[],
  is64: boolean,
): ElfResult<Pick<ElfFacts, 'soname' | 'needed'>> {
  const dynamic = sections.find((section) => section.type === 'dynamic');
  const strings = dynamic === undefined ? undefined : sections[dynamic.link];
  if (dynamic === undefined || strings === undefined) return { ok: true, value: { soname: null, needed: [] } };
  let soname: string | null = null;
  const needed: string[] = [];
  const entryBytes = is64 ? 16 : 8;
  for (let at = 0; at + entryBytes <= dynamic.data.length; at += entryBytes) {
    // Only tags of processors and vendors use the high half of a 64-bit tag, and these all have bit 30 of the low half
    // set.
    const tag = dynamic.data.readUInt32LE(at);
    if (tag === DT_NULL) break;
    if (tag !== DT_NEEDED && tag !== DT_SONAME) continue;
    const name = stringAt(strings.data, dynamic.data.readUInt32LE(at + entryBytes / 2));
    if (name === null) return refuse('broken', 'a name of the dynamic section lies outside of its string table');
    if (tag === DT_NEEDED) needed.push(name);
    else soname ??= name;
  }
  return { ok: true, value: { soname, needed } };
}

function stringAt(table: Buffer, offset: number): string | null {
  if (offset >= table.length) return null;
  const end = table.subarray(offset, offset + MAX_NAME).indexOf(0);
  return end < 0 ? null : table.toString('utf8', offset, offset + end);
}

/**
 * Notes are `{u32 owner size, u32 description size, u32 type}`, then both, each padded to four bytes; an invalid one
 * ends the list.
 */
function readNotes(section: Buffer): ElfNote[] {
  const notes: ElfNote[] = [];
  let at = 0;
  while (at + 12 <= section.length) {
    const ownerBytes = section.readUInt32LE(at);
    const descriptionBytes = section.readUInt32LE(at + 4);
    const owner = at + 12;
    const description = owner + Math.ceil(ownerBytes / 4) * 4;
    if (description + descriptionBytes > section.length) break;
    notes.push({
      owner: section.toString('latin1', owner, owner + Math.max(0, ownerBytes - 1)),
      type: section.readUInt32LE(at + 8),
      // A copy, because a view would keep the image of the whole file in memory.
      description: Buffer.from(section.subarray(description, description + descriptionBytes)),
    });
    at = description + Math.ceil(descriptionBytes / 4) * 4;
  }
  return notes;
}
