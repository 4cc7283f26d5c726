import type { Rate } from './address-rates.js';

/** Limits of one listener. */
export interface ListenerLimits {
  /**
   * Open connections in total and per address, and as many answers in preparation. For a further connection, one that
   * waits for a request is closed.
   */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Unanswered requests of a connection; with one more it is closed. */
  readonly requestsPerConnection: number;
  /**
   * New connections of an address, without those that had a POST request answered with 200. Those beyond it are closed,
   * unless they are plain and begin with a probe.
   */
  readonly connectionRate: Rate;
  /** Requests of an address with methods other than POST. Further ones get 429. */
  readonly documentRate: Rate;
  /** Bytes of answers that callers have not read yet, and the time to read a long one. */
  readonly unreadBytes: number;
  readonly readMs: number;
  /** Time for the TLS handshake and for the header of a request, from the start of the connection. */
  readonly headerMs: number;
  /** Time for a whole request with its body. */
  readonly requestMs: number;
  /** Time until the next request on a connection. */
  readonly idleMs: number;
  readonly headerBytes: number;
  /** Bytes of one body, and of all bodies without an answer yet. */
  readonly bodyBytes: number;
  readonly bodiesBytes: number;
  /** Bytes of all bodies from one address. */
  readonly bodiesBytesPerAddress: number;
}

/**
 * Longer than the 90 s for which kube-apiserver, kube-scheduler and other programs in Go keep a connection without
 * requests. If the server closed first, a request could arrive on a closed connection, and Go does not repeat a POST:
 * the review or the scheduler's call would fail.
 */
const IDLE_MS = 120_000;

/** Enough for scrapers, probes, pages and one API server; more is a mistake or an attack. */
export const LISTENER_LIMITS: ListenerLimits = {
  connections: 256,
  connectionsPerAddress: 128,
  requestsPerConnection: 8,
  connectionRate: { burst: 300, perSecond: 50 },
  documentRate: { burst: 500, perSecond: 100 },
  unreadBytes: 6 << 20,
  readMs: 30_000,
  headerMs: 5_000,
  requestMs: 10_000,
  idleMs: IDLE_MS,
  headerBytes: 16 * 1024,
  bodyBytes: 0,
  bodiesBytes: 0,
  bodiesBytesPerAddress: Infinity,
};
