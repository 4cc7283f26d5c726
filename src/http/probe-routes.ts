import { plain } from './answer.js';
import type { Route } from './listener.js';

export interface ProbeOptions {
  /** Reasons why the program cannot answer requests yet; empty once it can. */
  readonly notReady: () => readonly string[];
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
}

/**
 * The routes of every program: `/healthz` while it runs, `/readyz` once it can work, `/metrics` in Prometheus' format.
 */
export function probeRoutes({ notReady, metrics }: ProbeOptions): Readonly<Record<string, Route>> {
  return {
    ...Object.fromEntries(healthRoutes(notReady)),
    '/metrics': {
      method: 'GET',
      answer: async () => ({ status: 200, type: metrics.contentType, body: await metrics.text() }),
    },
  };
}

/** `/healthz` and `/readyz`, which need no token. */
export function healthRoutes(notReady: () => readonly string[]): ReadonlyMap<string, Route> {
  return new Map([
    ['/healthz', { method: 'GET', isOpen: true, answer: () => plain(200, 'ok') }],
    [
      '/readyz',
      {
        method: 'GET',
        isOpen: true,
        answer: () => {
          const waiting = notReady();
          return waiting.length === 0 ? plain(200, 'ok') : plain(503, waiting.join('\n'));
        },
      },
    ],
  ] satisfies [string, Route][]);
}
