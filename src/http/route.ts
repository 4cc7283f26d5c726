import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from './answer.js';

/** A request with a known route and an authorised caller. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Common name of the caller's certificate if the listener requested and verified one. */
  readonly clientName: string | null;
  /** The whole body. Rejects with a RefusedRequest if it is too large. */
  body(): Promise<string>;
  /** The whole body as bytes, for bodies that are too large for a text; valid until the answer is sent. */
  bytes(): Promise<Buffer>;
}

/** The handler of one path. */
export interface Route {
  /** GET also serves HEAD. */
  readonly method: 'GET' | 'POST';
  /** Whether the route needs no token even if the listener requires one. */
  readonly isOpen?: boolean;
  readonly answer: (request: HttpRequest) => Answer | Promise<Answer>;
}
