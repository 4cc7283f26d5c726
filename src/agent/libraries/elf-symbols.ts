import { parseSections, type ElfResult, type Span } from './elf.js';

/** The dynamic symbol table of a 64-bit library, and the strings that hold its names. */
interface SymbolTable {
  readonly symbols: Span;
  readonly names: Span;
}

// Bounds for invalid files: the driver's libraries have at most some thousand exports.
const MAX_SYMBOLS_BYTES = 24 * 65_536;
const MAX_NAMES_BYTES = 16 * 1024 * 1024;

// Elf64_Sym: {u32 name, u8 info, u8 other, u16 section, u64 value, u64 size} (System V ABI, chapter 4).
const SYMBOL_BYTES = 24;
const INFO = 4;
const SECTION = 6;
const VALUE = 8;
const UNDEFINED = 0;
const LOCAL = 0;
const WEAK = 2;
const NO_TYPE = 0;

/** The ranges that {@link exportedNames} reads, from an image in which only header and tables need to be filled in. */
export function symbolSpans(image: Buffer): ElfResult<readonly Span[]> {
  const table = symbolTable(image);
  return table.ok ? { ok: true, value: [table.value.symbols, table.value.names] } : table;
}

/** The names that programs find in a 64-bit library with `dlsym`, or by being linked with it. */
export function exportedNames(image: Buffer): ElfResult<ReadonlySet<string>> {
  const table = symbolTable(image);
  if (!table.ok) return table;
  const names = new Set<string>();
  for (const { name } of definedSymbols(image, table.value)) names.add(name);
  return { ok: true, value: names };
}

/**
 * A copy of a 64-bit library in which programs do not find `names`: their symbols become weak and undefined. The
 * dynamic linker passes over such a symbol and continues with the next library, and a linker accepts a library that
 * has one. The functions stay where they are, for addresses that the library itself takes.
 */
export function withoutExports(image: Buffer, names: ReadonlySet<string>): ElfResult<Buffer> {
  const table = symbolTable(image);
  if (!table.ok) return table;
  const copy = Buffer.from(image);
  for (const { name, at } of definedSymbols(image, table.value)) {
    if (!names.has(name)) continue;
    copy.fill(0, at + INFO + 1, at + SYMBOL_BYTES);
    copy.writeUInt8((WEAK << 4) | NO_TYPE, at + INFO);
  }
  return { ok: true, value: copy };
}

/** Every symbol that the table defines for other files, with the offset of its entry. */
function* definedSymbols(image: Buffer, { symbols, names }: SymbolTable): Generator<{ name: string; at: number }> {
  const end = names.offset + names.length;
  for (let at = symbols.offset; at + SYMBOL_BYTES <= symbols.offset + symbols.length; at += SYMBOL_BYTES) {
    if (image.readUInt16LE(at + SECTION) === UNDEFINED || image.readUInt8(at + INFO) >> 4 === LOCAL) continue;
    if (image.readBigUInt64LE(at + VALUE) === 0n) continue;
    const start = names.offset + image.readUInt32LE(at);
    const length = start < end ? image.subarray(start, end).indexOf(0) : -1;
    if (length > 0) yield { name: image.toString('latin1', start, start + length), at };
  }
}

function symbolTable(image: Buffer): ElfResult<SymbolTable> {
  const parsed = parseSections(image);
  if (!parsed.ok) return parsed;
  const { sections, is64 } = parsed.value;
  if (!is64) return { ok: false, code: 'unsupported', reason: 'not a 64-bit library' };
  const symbols = sections.find((section) => section.type === 'dynsym');
  const names = symbols === undefined ? undefined : sections[symbols.link];
  if (symbols === undefined || names === undefined || names.type !== 'strtab')
    return { ok: false, code: 'broken', reason: 'it has no dynamic symbol table' };
  for (const [section, most] of [[symbols, MAX_SYMBOLS_BYTES] as const, [names, MAX_NAMES_BYTES] as const]) {
    if (section.off + section.size > image.length)
      return { ok: false, code: 'truncated', reason: 'the dynamic symbols lie behind the end of the file' };
    if (section.size > most)
      return { ok: false, code: 'unsupported', reason: `dynamic symbols or names of ${section.size} bytes` };
  }
  return {
    ok: true,
    value: {
      symbols: { offset: symbols.off, length: symbols.size },
      names: { offset: names.off, length: names.size },
    },
  };
}
