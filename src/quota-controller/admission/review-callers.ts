import type { HttpRequest } from '../../http/listener.js';

/** Who may ask for reviews: the API server, however it is known. */
export interface ReviewCallers {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** What stands before the paths of reviews in the webhook configuration; empty for nothing. */
  readonly prefix: string;
  /** Calls `announce` when the prefix has changed, until `stop`. */
  onChange(announce: () => Promise<void>): void;
  /** The path of a review that a request's path stands for: `/workloads`. Null where it stands for none. */
  reviewPath(path: string): string | null;
  /** Whether this caller may ask. */
  mayAsk(request: Pick<HttpRequest, 'clientName'>): boolean;
}

/** Everybody who reaches the port. */
export const ANY_CALLER: ReviewCallers = {
  start: async () => undefined,
  stop: async () => undefined,
  prefix: '',
  onChange: () => undefined,
  reviewPath: (path) => path,
  mayAsk: () => true,
};

/**
 * Callers with a certificate that the listener has verified; with `names`, only those with one of these common names.
 */
export function certifiedCallers(names: readonly string[]): ReviewCallers {
  return {
    ...ANY_CALLER,
    mayAsk: ({ clientName }) => clientName !== null && (names.length === 0 || names.includes(clientName)),
  };
}
