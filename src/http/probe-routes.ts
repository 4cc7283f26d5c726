import { plain, type Answer } from './answer.js';
import type { Route } from './route.js';
import { sharedAnswer } from './shared-answer.js';

/** Tells whether a program can answer requests. */
export interface Readiness {
  /** Reasons why the program cannot answer requests yet; empty once it can. */
  readonly notReady: () => readonly string[];
}

/** The answer of `/healthz`, which says that the program runs, or of `/readyz`, which says that it can work. */
export function probeAnswer(path: string, { notReady }: Readiness): Answer {
  const waiting = path === '/readyz' ? notReady() : [];
  return waiting.length === 0 ? plain(200, 'ok') : plain(503, waiting.join('\n'));
}

/** The route of a probe, which needs no token; null for another path. */
export function probeRoute(path: string, readiness: Readiness): Route | null {
  if (path !== '/healthz' && path !== '/readyz') return null;
  return { method: 'GET', isOpen: true, answer: () => probeAnswer(path, readiness) };
}

/** The route of `/metrics`, in Prometheus' format. */
export function metricsRoute(metrics: { readonly contentType: string; text(): Promise<string> }): Route {
  return {
    method: 'GET',
    answer: sharedAnswer(async () => ({ status: 200, type: metrics.contentType, body: await metrics.text() })),
  };
}
