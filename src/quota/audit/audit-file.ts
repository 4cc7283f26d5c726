import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { QuotaEvent } from '../core/event.js';
import { linesOf } from '../lines.js';
import { AuditChain, verifyChain, type BrokenChain, type ChainEnd } from './chain.js';

/** An audit file that is being written. */
export interface AuditFile {
  readonly append: (event: QuotaEvent) => void;
  /** Waits until everything is on the disk, and returns where the chain ends. */
  readonly close: () => Promise<ChainEnd>;
}

/** Opens an audit file to go on behind what it has, which has to be a whole chain. */
export async function openAuditFile(
  path: string,
): Promise<{ readonly ok: true; readonly file: AuditFile } | BrokenChain> {
  const handle = await open(path, 'a+', 0o640);
  const known = await verifyAuditFile(path);
  if (!known.ok) {
    await handle.close();
    return known;
  }
  const chain = new AuditChain(known.end);
  let waiting: string[] = [];
  let failure: Error | null = null;
  let writing: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      await handle.appendFile(lines.join(''));
    }
    writing = null;
  };
  return {
    ok: true,
    file: {
      append: (event) => {
        waiting.push(`${chain.append(event)}\n`);
        writing ??= Promise.resolve()
          .then(write)
          .catch((error: unknown) => {
            failure = error instanceof Error ? error : new Error(String(error));
          });
      },
      close: async () => {
        await writing;
        await handle.sync();
        await handle.close();
        if (failure !== null) throw failure;
        return chain.end;
      },
    },
  };
}

/** Checks an audit file. One that is empty is a chain without lines. */
export async function verifyAuditFile(path: string, head?: string): ReturnType<typeof verifyChain> {
  return verifyChain(linesOf(createReadStream(path)), head);
}
