import koffi from 'koffi';

/** So long Node may take to end by itself once everything is stopped. */
const END_MS = 2000;

/**
 * Ends the process soon, even where Node cannot: a call into a driver that never returns holds one of Node's threads,
 * and with it both the event loop and exit(), which waits for them. `_exit` of the C library waits for nothing. Where
 * nothing hangs, Node has ended long before.
 */
export function endAnyway(): void {
  setTimeout(() => {
    const exit = koffi.load(null).func('_exit', 'void', ['int']) as (code: number) => void;
    exit(Number(process.exitCode ?? 0));
  }, END_MS).unref();
}
