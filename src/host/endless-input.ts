import koffi from 'koffi';
import { chmodSync, constants, lstatSync, openSync, rmSync } from 'node:fs';

type MakeFifo = (path: string, mode: number) => number;
let mkfifo: MakeFifo | null = null;

/**
 * Opens a named pipe at `path` as the standard input of a program that ends with its input. The program holds the
 * writing end too, so that its input does not end with this process. Returns the descriptor, which the caller closes.
 */
export function openEndlessInput(path: string): number {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFIFO() !== true) {
    rmSync(path, { force: true });
    mkfifo ??= koffi.load('libc.so.6').func('int mkfifo(const char *path, unsigned int mode)') as MakeFifo;
    if (mkfifo(path, 0o600) !== 0) throw new Error(`mkfifo ${path}: error ${koffi.errno()}`);
  }
  chmodSync(path, 0o600);
  return openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
}
