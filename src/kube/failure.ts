/** The kinds of failure of a request to the API server that callers distinguish. */
export type KubeFailureCode =
  /** No connection, or it broke before the answer was complete. */
  | 'unreachable'
  | 'timeout'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  /** Another writer changed the object meanwhile, or a precondition does not hold. */
  | 'conflict'
  | 'already-exists'
  /** 410: the requested history or page has expired. */
  | 'expired'
  /** The server is behind the requested version: another replica, or a restored backup. */
  | 'too-new'
  | 'too-many-requests'
  /** The server refuses the request permanently. */
  | 'invalid'
  | 'server-error'
  /** The answer is not valid API content. */
  | 'malformed';

export interface KubeFailure {
  readonly ok: false;
  readonly code: KubeFailureCode;
  /** Text for logs. */
  readonly message: string;
  /** Delay that the server requests; null without one. */
  readonly retryAfterMs: number | null;
}

/** An exception for a failure where code needs an answer. */
export class KubeError extends Error {
  readonly code: KubeFailureCode;

  constructor(what: string, { code, message }: KubeFailure) {
    super(`${what}: ${message}`);
    this.name = 'KubeError';
    this.code = code;
  }
}

export function failure(code: KubeFailureCode, message: string, retryAfterMs: number | null = null): KubeFailure {
  return { ok: false, code, message, retryAfterMs };
}

interface StatusBody {
  readonly message?: unknown;
  readonly reason?: unknown;
}

/** Translates an HTTP answer other than 2xx; `body` is the Status object if the server sent one. */
export function failureOf(httpStatus: number, body: unknown, retryAfter: string | undefined): KubeFailure {
  const status: StatusBody = typeof body === 'object' && body !== null ? body : {};
  const message = typeof status.message === 'string' ? status.message : `HTTP ${httpStatus}`;
  const seconds = Number(retryAfter ?? NaN);
  return failure(codeOf(httpStatus, status.reason, message), message, Number.isFinite(seconds) ? seconds * 1000 : null);
}

function codeOf(httpStatus: number, reason: unknown, message: string): KubeFailureCode {
  switch (httpStatus) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not-found';
    case 409:
      return reason === 'AlreadyExists' ? 'already-exists' : 'conflict';
    case 410:
      return 'expired';
    case 429:
      return 'too-many-requests';
    default:
      if (httpStatus >= 500) return message.includes('Too large resource version') ? 'too-new' : 'server-error';
      return httpStatus >= 400 ? 'invalid' : 'malformed';
  }
}
