import type { Socket } from 'node:net';

/** Counts the open connections of each address, and closes those beyond what one address may have. */
export class ConnectionCounter {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a connection on. Returns false, and closes it, where its address has too many. */
  admit(socket: Socket): boolean {
    // Closed before it was checked.
    const address = socket.remoteAddress;
    if (address === undefined) {
      socket.destroy();
      return false;
    }
    const open = (this.#open.get(address) ?? 0) + 1;
    if (open > this.#most) {
      socket.destroy();
      return false;
    }
    this.#open.set(address, open);
    socket.once('close', () => {
      const left = (this.#open.get(address) ?? 1) - 1;
      if (left === 0) this.#open.delete(address);
      else this.#open.set(address, left);
    });
    return true;
  }
}
