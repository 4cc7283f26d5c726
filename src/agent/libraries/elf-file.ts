import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { exportedNames, symbolSpans } from './elf-symbols.js';
import {
  contentSpans,
  ELF_HEADER_BYTES,
  readElf,
  tableSpans,
  type ElfFacts,
  type ElfResult,
  type Span,
} from './elf.js';

/** No library of a driver is larger (the largest has some 120 MB). */
const MAX_FILE_BYTES = 2 * 1024 ** 3;

/**
 * Reads only the parts of a file that {@link readElf} needs: a driver's libraries have 600 MB in total, and these parts
 * some hundred kilobytes. The image is as long as the file, but only pages that are read take memory. Rejects with the
 * file system's error.
 */
export const readElfFile = (path: string): Promise<ElfResult<ElfFacts>> => readParts(path, contentSpans, readElf);

/** Reads the names that a 64-bit library exports, and only the parts of the file that this needs. */
export const readExports = (path: string): Promise<ElfResult<ReadonlySet<string>>> =>
  readParts(path, symbolSpans, exportedNames);

async function readParts<T>(
  path: string,
  spansOf: (image: Buffer) => ElfResult<readonly Span[]>,
  read: (image: Buffer) => ElfResult<T>,
): Promise<ElfResult<T>> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    if (size > MAX_FILE_BYTES) return { ok: false, code: 'unsupported', reason: `the file has ${size} bytes` };
    const header = Buffer.alloc(Math.min(size, ELF_HEADER_BYTES));
    await fill(file, header, [{ offset: 0, length: header.length }]);
    const tables = tableSpans(header, size);
    if (!tables.ok) return tables;

    const image = Buffer.alloc(size);
    header.copy(image);
    await fill(file, image, tables.value);
    const content = spansOf(image);
    if (!content.ok) return content;
    await fill(file, image, content.value);
    return read(image);
  } finally {
    await file.close();
  }
}

async function fill(file: FileHandle, image: Buffer, spans: readonly Span[]): Promise<void> {
  for (const { offset, length } of spans) {
    let done = 0;
    while (done < length) {
      const { bytesRead } = await file.read(image, offset + done, length - done, offset + done);
      // The file shrank meanwhile: the rest stays zero, and the parser refuses inconsistent content.
      if (bytesRead === 0) return;
      done += bytesRead;
    }
  }
}
