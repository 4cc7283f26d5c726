import { plain } from './answer.js';
import type { Route } from './listener.js';

export interface ProbeOptions {
  /** What requests wait for; nothing once they can be answered. */
  readonly notReady: () => readonly string[];
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
}

/**
 * What every program answers: `/healthz` while it lives, `/readyz` once it can do its work, `/metrics` in Prometheus'
 * format.
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
