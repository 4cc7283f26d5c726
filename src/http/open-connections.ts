import type { Socket } from 'node:net';
import type { ListenerLimits } from './limits.js';

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** No request came on it yet. */
  isNew: boolean;
  /** Requests that are not answered yet. */
  requests: number;
}

/** What identifies a connection: a TLS socket has the same peer as the TCP socket below it. */
type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/**
 * The open connections of a listener, within limits for each address and in sum. Where a new one has no room, the
 * oldest one that waits for a request is closed in its place, first of those on which none ever came: connections
 * that say nothing keep nobody out. The new one is closed where all others have a request under way.
 */
export class OpenConnections {
  readonly #limits: Pick<ListenerLimits, 'connections' | 'connectionsPerAddress'>;
  /** By peer, the oldest first. */
  readonly #open = new Map<string, Connection>();
  readonly #ofAddress = new Map<string, number>();

  constructor(limits: Pick<ListenerLimits, 'connections' | 'connectionsPerAddress'>) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Takes a connection on. Returns false, and closes it, where there is no room for it. */
  admit(socket: Socket): boolean {
    const { connections, connectionsPerAddress } = this.#limits;
    const address = socket.remoteAddress;
    // Without an address it was closed before it was looked at.
    const hasRoom =
      address !== undefined &&
      ((this.#ofAddress.get(address) ?? 0) < connectionsPerAddress || this.#closeOldest(address)) &&
      (this.#open.size < connections || this.#closeOldest(null));
    if (!hasRoom) {
      socket.destroy();
      return false;
    }
    const key = keyOf(socket);
    this.#open.set(key, { socket, address, isNew: true, requests: 0 });
    this.#ofAddress.set(address, (this.#ofAddress.get(address) ?? 0) + 1);
    socket.once('close', () => this.#remove(key, socket));
    return true;
  }

  /** A request came. Returns what is to be called when it was answered. */
  began(peer: Peer): () => void {
    const connection = this.#open.get(keyOf(peer));
    if (connection === undefined) return () => undefined;
    connection.isNew = false;
    connection.requests++;
    return () => {
      connection.requests--;
    };
  }

  /** Closes a connection that waits for a request: of an address, or of all of them. False where there is none. */
  #closeOldest(address: string | null): boolean {
    let found: [string, Connection] | null = null;
    for (const entry of this.#open) {
      const [, { address: from, isNew, requests }] = entry;
      if (requests > 0 || (address !== null && from !== address)) continue;
      found ??= entry;
      if (!isNew) continue;
      found = entry;
      break;
    }
    if (found === null) return false;
    const [key, { socket }] = found;
    socket.destroy();
    // Its room is free now, not when the socket says that it is closed.
    this.#remove(key, socket);
    return true;
  }

  #remove(key: string, socket: Socket): void {
    const connection = this.#open.get(key);
    if (connection?.socket !== socket) return;
    this.#open.delete(key);
    const left = (this.#ofAddress.get(connection.address) ?? 1) - 1;
    if (left === 0) this.#ofAddress.delete(connection.address);
    else this.#ofAddress.set(connection.address, left);
  }
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
