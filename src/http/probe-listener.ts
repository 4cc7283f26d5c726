import type { LimitedLogTarget } from '../host/limited-log.js';
import { Listener } from './listener.js';
import type { ListenerLimits } from './limits.js';
import { healthRoutes } from './probe-routes.js';

export interface ProbeListenerOptions {
  readonly address: string;
  /** 0 for a free one. */
  readonly port: number;
  /** What requests wait for; nothing once they can be answered. */
  readonly notReady: () => readonly string[];
  readonly log: LimitedLogTarget;
}

/** One kubelet asks, twice in some seconds. */
const LIMITS: Partial<ListenerLimits> = {
  connections: 64,
  connectionsPerAddress: 16,
  headerMs: 2_000,
  requestMs: 2_000,
  idleMs: 1_000,
  headerBytes: 4 * 1024,
};

/**
 * A listener of its own for `/healthz` and `/readyz`: what other callers do on other ports does not keep the kubelet
 * waiting. Plain HTTP, because a probe tells nothing that is worth hiding.
 */
export function probeListener({ address, port, notReady, log }: ProbeListenerOptions): Listener {
  const routes = healthRoutes(notReady);
  return new Listener({
    address,
    port,
    tls: null,
    limits: LIMITS,
    route: (path) => routes.get(path) ?? null,
    log,
  });
}
