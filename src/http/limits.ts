/** What one listener lets its callers take. */
export interface ListenerLimits {
  /**
   * Connections that are open at once, and those of them from one address. For one more, one that waits for a request
   * is closed.
   */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** For the TLS handshake, and then for the header of a request, from the first moment of a connection on. */
  readonly headerMs: number;
  /** For a whole request, body and all. */
  readonly requestMs: number;
  /** For the next request on a connection. */
  readonly idleMs: number;
  readonly headerBytes: number;
  /** Of one body, and of all bodies together that are not answered yet. */
  readonly bodyBytes: number;
  readonly bodiesBytes: number;
  /** Of all bodies from one address. */
  readonly bodiesBytesPerAddress: number;
}

/** Scrapers, probes, pages and one API server; more is a mistake or an attack. */
export const LISTENER_LIMITS: ListenerLimits = {
  connections: 256,
  connectionsPerAddress: 128,
  headerMs: 5_000,
  requestMs: 10_000,
  idleMs: 5_000,
  headerBytes: 16 * 1024,
  bodyBytes: 0,
  bodiesBytes: 0,
  bodiesBytesPerAddress: Infinity,
};
