import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import {
  contentSpans,
  ELF_HEADER_BYTES,
  readElf,
  tableSpans,
  type ElfFacts,
  type ElfResult,
  type Span,
} from './elf.js';

/** Files larger than this are no libraries of a driver (the largest has some 120 MB). */
const LARGEST_FILE_BYTES = 2 * 1024 ** 3;

/**
 * Reads what {@link readElf} says of the file at `path`, and no more of it than that: a driver's libraries have 600 MB
 * in all, what is needed of them lies in some hundred kilobytes. The image is as long as the file, but its pages stay
 * untouched (and so cost no memory) except where something was read into it. Rejects with the file system's error.
 */
export async function readElfFile(path: string): Promise<ElfResult<ElfFacts>> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    if (size > LARGEST_FILE_BYTES) return { ok: false, code: 'unsupported', reason: `the file has ${size} bytes` };
    const header = Buffer.alloc(Math.min(size, ELF_HEADER_BYTES));
    await fill(file, header, [{ offset: 0, length: header.length }]);
    const tables = tableSpans(header, size);
    if (!tables.ok) return tables;

    const image = Buffer.alloc(size);
    header.copy(image);
    await fill(file, image, tables.value);
    const content = contentSpans(image);
    if (!content.ok) return content;
    await fill(file, image, content.value);
    return readElf(image);
  } finally {
    await file.close();
  }
}

async function fill(file: FileHandle, image: Buffer, spans: readonly Span[]): Promise<void> {
  for (const { offset, length } of spans) {
    let done = 0;
    while (done < length) {
      const { bytesRead } = await file.read(image, offset + done, length - done, offset + done);
      // The file shrank since it was measured: the rest stays zero, and the parser refuses what does not fit together.
      if (bytesRead === 0) return;
      done += bytesRead;
    }
  }
}
