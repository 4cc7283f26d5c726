import type { Socket } from 'node:net';
import type { ListenerLimits } from './limits.js';

type ConnectionLimits = Pick<ListenerLimits, 'connections' | 'connectionsPerAddress' | 'requestsPerConnection'>;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Whether no request has arrived on it yet. */
  isNew: boolean;
  /** Requests without an answer. */
  readonly exchanges: Set<Exchange>;
}

/** A request until it is answered, or its connection is closed. */
export class Exchange {
  #hasEnded = false;
  readonly #actions: (() => void)[] = [];

  /** Calls `action` once at the end, or at once if the exchange has ended. */
  onEnd(action: () => void): void {
    if (this.#hasEnded) action();
    else this.#actions.push(action);
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const action of this.#actions) action();
  }
}

/** Identifies a connection: a TLS socket has the same peer as its TCP socket. */
type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/**
 * The open connections of a listener, with limits per address and in total. If there is no room for a new one, the
 * oldest connection that waits for a request is closed, preferably one that never had a request, so that silent
 * connections keep no caller out. If all others have running requests, the new one is closed.
 */
export class OpenConnections {
  readonly #limits: ConnectionLimits;
  /** By peer, oldest first. */
  readonly #open = new Map<string, Connection>();
  readonly #ofAddress = new Map<string, number>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Adds a connection. Returns false, and closes it, if there is no room. */
  admit(socket: Socket): boolean {
    const { connections, connectionsPerAddress } = this.#limits;
    const address = socket.remoteAddress;
    // A connection without an address has been closed already.
    const hasRoom =
      address !== undefined &&
      ((this.#ofAddress.get(address) ?? 0) < connectionsPerAddress || this.#closeOldest(address)) &&
      (this.#open.size < connections || this.#closeOldest(null));
    if (!hasRoom) {
      socket.destroy();
      return false;
    }
    const key = keyOf(socket);
    this.#open.set(key, { socket, address, isNew: true, exchanges: new Set() });
    this.#ofAddress.set(address, (this.#ofAddress.get(address) ?? 0) + 1);
    socket.once('close', () => this.#remove(key, socket));
    return true;
  }

  /** Whether a connection has as many unanswered requests as it may have. */
  isFull(peer: Peer): boolean {
    return (this.#open.get(keyOf(peer))?.exchanges.size ?? 0) >= this.#limits.requestsPerConnection;
  }

  /** A request has arrived. The exchange ends with its answer, or earlier with the connection. */
  began(peer: Peer): Exchange {
    const exchange = new Exchange();
    const connection = this.#open.get(keyOf(peer));
    if (connection === undefined) {
      exchange.end();
      return exchange;
    }
    connection.isNew = false;
    connection.exchanges.add(exchange);
    exchange.onEnd(() => connection.exchanges.delete(exchange));
    return exchange;
  }

  /** Closes the connections that wait for a request. */
  closeWaiting(): void {
    for (const { socket, exchanges } of [...this.#open.values()]) if (exchanges.size === 0) socket.destroy();
  }

  /** Closes the oldest connection that waits for a request, of one address or of all. False if there is none. */
  #closeOldest(address: string | null): boolean {
    let found: [string, Connection] | null = null;
    for (const entry of this.#open) {
      const [, { address: from, isNew, exchanges }] = entry;
      if (exchanges.size > 0 || (address !== null && from !== address)) continue;
      found ??= entry;
      if (!isNew) continue;
      found = entry;
      break;
    }
    if (found === null) return false;
    const [key, { socket }] = found;
    socket.destroy();
    // Its room is free at once, before the socket reports the close.
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
    for (const exchange of [...connection.exchanges]) exchange.end();
  }
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
