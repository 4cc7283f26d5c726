import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The class of a listener's requests, which ends the parsing of a connection with too many unanswered requests. Node
 * parses a chunk of up to 64 KiB, thousands of pipelined requests, before any code of the server could close the
 * socket; it leaves the rest of the chunk alone only after a request that leaves HTTP. So the first request beyond the
 * limit says that it is an upgrade, and the server's listener of `upgrade` closes the connection. Real upgrades are
 * answered like any other request.
 */
export function boundedRequest(isFull: (socket: Socket) => boolean): typeof IncomingMessage {
  return class BoundedRequest extends IncomingMessage {
    #isBeyond: boolean | null = null;

    get upgrade(): boolean {
      return (this.#isBeyond ??= isFull(this.socket)) || this.method === 'CONNECT';
    }

    set upgrade(_: boolean) {
      // Node sets the value of the header here; the getter decides instead.
    }
  };
}
