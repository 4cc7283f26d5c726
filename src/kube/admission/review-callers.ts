import type { HttpRequest } from '../../http/listener.js';

/** Decides which callers may request reviews. */
export interface ReviewCallers {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Path prefix of the webhooks in the webhook configuration; empty for none. */
  readonly prefix: string;
  /** Calls `announce` when the prefix has changed, until `stop`. */
  onChange(announce: () => Promise<void>): void;
  /** The review (`/workloads`) that a request path names; null for other paths. */
  reviewPath(path: string): string | null;
  /** Whether the caller of a request may request reviews. */
  isAccepted(request: Pick<HttpRequest, 'clientName'>): boolean;
}

/** Allows every caller that reaches the port. */
export const ANY_CALLER: ReviewCallers = {
  start: async () => undefined,
  stop: async () => undefined,
  prefix: '',
  onChange: () => undefined,
  reviewPath: (path) => path,
  isAccepted: () => true,
};

/**
 * Allows callers with a verified client certificate; with `names`, only certificates with one of these common names.
 */
export function certifiedCallers(names: readonly string[]): ReviewCallers {
  return {
    ...ANY_CALLER,
    isAccepted: ({ clientName }) => clientName !== null && (names.length === 0 || names.includes(clientName)),
  };
}
