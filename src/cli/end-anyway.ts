import koffi from 'koffi';

/** Time in which Node should exit after everything has stopped. */
const END_MS = 2000;

/**
 * Ends the process soon, even if Node cannot: a driver call that never returns blocks one of Node's threads, and with
 * it the event loop and exit(), which waits for the thread. `_exit` of the C library waits for nothing. Without a
 * hanging call, Node has ended long before.
 */
export function endAnyway(): void {
  setTimeout(() => {
    const exit = koffi.load(null).func('_exit', 'void', ['int']) as (code: number) => void;
    exit(Number(process.exitCode ?? 0));
  }, END_MS).unref();
}
