import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import { stopSignal } from './stop-signal.js';
import { printable } from './terminal-text.js';

/** Interval of `--watch`. */
const INTERVAL_MS = 2_000;

export function watchOption(what = 'rows'): Option {
  return new Option('-w, --watch', `then print ${what} again as they change, until a signal arrives`);
}

/**
 * Passes `first` and everything that `read` answers afterwards to `show`, until SIGINT or SIGTERM arrives. Failed reads
 * are tried again; standard error says once when they begin, and once when they end.
 */
export async function watch<T>(first: T, read: () => Promise<T>, show: (answer: T) => Promise<void>): Promise<void> {
  const end = new AbortController();
  const ended = stopSignal().then(() => end.abort());
  let isFailing = false;
  const tell = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
  const next = async (): Promise<void> => {
    try {
      const answer = await read();
      if (isFailing) tell('reading works again');
      isFailing = false;
      if (!end.signal.aborted) await show(answer);
    } catch (error) {
      if (!isFailing) tell(`reading failed, trying again every ${INTERVAL_MS / 1000} s: ${(error as Error).message}`);
      isFailing = true;
    }
  };
  await show(first);
  while (!end.signal.aborted) {
    await delay(INTERVAL_MS, undefined, { signal: end.signal }).catch(() => undefined);
    // A read that takes long does not delay the end.
    if (!end.signal.aborted) await Promise.race([next(), ended]);
  }
}
