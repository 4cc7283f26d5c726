import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { QuotaEvent } from '../core/state/event.js';
import { linesOf } from '../lines.js';
import { openRegularFile, READ_AND_APPEND } from '../store/regular-file.js';
import { AuditChain, isAuditLine, verifyChain, type BrokenChain, type ChainEnd } from './chain.js';

/** An open audit file. */
export interface AuditFile {
  readonly append: (event: QuotaEvent) => void;
  /** Flushes all lines to disk and returns the end of the chain. */
  readonly close: () => Promise<ChainEnd>;
}

/** A stream to write text to, such as a Writable of Node. */
export interface TextStream {
  /** Calls `done` when the text is written, or with the error. */
  write(text: string, done: (error?: Error | null) => void): unknown;
}

/** Called once when a line cannot be written. No line follows it, because the chain would be broken. */
export type AuditFailed = (error: Error) => void;

/**
 * Opens an audit file for appending. Its lines must form a complete chain; a torn last line, left by a killed writer,
 * is cut off.
 */
export async function openAuditFile(
  path: string,
  failed: AuditFailed = () => undefined,
): Promise<{ readonly ok: true; readonly file: AuditFile } | BrokenChain> {
  const handle = await openRegularFile(path, READ_AND_APPEND);
  await cutTornLine(handle);
  const known = await verifyAuditFile(path);
  if (!known.ok) {
    await handle.close();
    return known;
  }
  const file = writer(
    new AuditChain(known.end),
    (text) => handle.appendFile(text),
    async () => {
      await handle.sync();
      await handle.close();
    },
    failed,
  );
  return { ok: true, file };
}

/** Writes a new chain to a stream, such as standard output. The stream stays open. */
export function auditStream(stream: TextStream, failed: AuditFailed = () => undefined): AuditFile {
  const write = (text: string): Promise<void> =>
    new Promise((resolve, reject) =>
      stream.write(text, (error) => (error === null || error === undefined ? resolve() : reject(error))),
    );
  return writer(new AuditChain(), write, async () => undefined, failed);
}

function writer(
  chain: AuditChain,
  write: (text: string) => Promise<void>,
  end: () => Promise<void>,
  failed: AuditFailed,
): AuditFile {
  let waiting: string[] = [];
  let failure: Error | null = null;
  let writing: Promise<void> | null = null;
  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0 && failure === null) {
      const lines = waiting;
      waiting = [];
      await write(lines.join(''));
    }
    writing = null;
  };
  return {
    append: (event) => {
      if (failure !== null) return;
      waiting.push(`${chain.append(event)}\n`);
      writing ??= Promise.resolve()
        .then(writeAll)
        .catch((error: unknown) => {
          failure = error instanceof Error ? error : new Error(String(error));
          failed(failure);
        });
    },
    close: async () => {
      await writing;
      await end();
      if (failure !== null) throw failure;
      return chain.end;
    },
  };
}

/** A torn line has no line feed at its end. */
async function cutTornLine(handle: FileHandle): Promise<void> {
  const { size } = await handle.stat();
  const block = Buffer.alloc(64 << 10);
  for (let end = size; end > 0;) {
    const from = Math.max(0, end - block.length);
    const { bytesRead } = await handle.read(block, 0, end - from, from);
    const at = block.subarray(0, bytesRead).lastIndexOf(10);
    if (at >= 0 || from === 0) {
      const whole = at >= 0 ? from + at + 1 : 0;
      if (whole < size) await handle.truncate(whole);
      return;
    }
    end = from;
  }
}

/** Verifies an audit file; an empty file is an empty chain. */
export async function verifyAuditFile(path: string, head?: string): ReturnType<typeof verifyChain> {
  const file = await openRegularFile(path, constants.O_RDONLY);
  return verifyAuditStream(file.createReadStream(), head);
}

/** Verifies the lines of a stream; with `amongOthers`, only the audit lines of a log. */
export async function verifyAuditStream(
  stream: AsyncIterable<Uint8Array | string>,
  head?: string,
  amongOthers = false,
): ReturnType<typeof verifyChain> {
  return verifyChain(amongOthers ? auditLinesOf(linesOf(stream)) : linesOf(stream), head);
}

/** Yields other lines as empty ones, to keep the line numbers. */
async function* auditLinesOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield isAuditLine(line) ? line : '';
}
