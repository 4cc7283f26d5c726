import type { LimitedLogTarget } from '../host/limited-log.js';
import { Listener } from './listener.js';
import type { ListenerLimits } from './limits.js';
import type { Readiness } from './probe-routes.js';

export interface ProbeListenerOptions extends Readiness {
  readonly address: string;
  /** 0: a free port. */
  readonly port: number;
  readonly log: LimitedLogTarget;
}

/** The only caller is one kubelet, twice in some seconds. */
const LIMITS: Partial<ListenerLimits> = {
  connections: 64,
  connectionsPerAddress: 16,
  headerMs: 2_000,
  requestMs: 2_000,
  idleMs: 1_000,
  headerBytes: 4 * 1024,
};

/**
 * A separate listener for `/healthz` and `/readyz`, so that callers of other ports cannot delay the kubelet. Plain
 * HTTP, because a probe contains no secret.
 */
export function probeListener({ address, port, notReady, log }: ProbeListenerOptions): Listener {
  return new Listener({ address, port, tls: null, limits: LIMITS, route: () => null, notReady, log });
}
