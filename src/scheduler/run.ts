import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BINDING_LASTS_MS } from '../kube/pod-writes.js';
import type { LeaseName } from './election.js';
import { Extender, type ExtenderOptions } from './extender.js';
import type { Offer } from './extender-service.js';
import type { PolicyName } from '../cluster/placement/policy/policy.js';
import { systemClock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { EvictionLimitWatch } from './eviction-limit-watch.js';
import { ClusterWatch } from './cluster-watch.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Part } from '../host/lifecycle.js';
import { podWriter } from './pod-writer.js';
import { StartupError } from '../host/startup-error.js';
import { VERSION } from '../host/version.js';

export interface ExtenderConfig {
  readonly address: string;
  readonly port: number;
  readonly policy: PolicyName;
  readonly reservationTtlMs: number;
  readonly settleTimeoutMs: number;
  readonly offer: Offer;
  /** The Lease that decides which replica answers; null for one replica. */
  readonly lease: LeaseName | null;
  /** Null: the service account of the pod that the extender runs in. */
  readonly kubeconfig: string | null;
  /** Paths of the TLS files; null for plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly clientCaFile: string | null } | null;
}

/** Delay of a start without a Lease: the API server has ended the bindings of the previous process by then. */
const START_DELAY_MS = BINDING_LASTS_MS + 300;

/** The composition root of `gpu-manager extender`: the parts in the order in which they start. */
export async function buildExtender(config: ExtenderConfig, log: Log): Promise<readonly Part[]> {
  const clock = systemClock;
  const client = await openKubeClient(config.kubeconfig, clock);
  const tls = config.tls === null ? null : new CertificateFiles({ ...config.tls, clock, log });
  await tls?.read().catch((error: unknown) => {
    throw new StartupError(`the TLS certificate cannot be used: ${(error as Error).message}`);
  });
  const startDelayMs = config.lease === null ? START_DELAY_MS : 0;
  const options: ExtenderOptions = { ...config, version: VERSION, tls, startDelayMs };
  const identity = `${hostname()}-${randomUUID()}`;
  const election = config.lease === null ? null : { api: client, lease: config.lease, identity };
  const source = new ClusterWatch({ client, clock, log });
  const limits = new EvictionLimitWatch({ client, clock, log });
  const extender = new Extender(options, { source, limits, writer: podWriter(client), clock, log, election });
  return [
    { name: 'api-client', start: async () => undefined, stop: async () => client.close() },
    { name: 'eviction-limits', start: async () => limits.start(), stop: () => limits.stop() },
    {
      name: 'extender',
      start: async () => {
        await extender.start();
        log.info(
          {
            address: config.address,
            port: extender.port,
            policy: config.policy,
            version: VERSION,
            tls: config.tls !== null,
          },
          'the extender started',
        );
      },
      stop: () => extender.stop(),
    },
  ];
}
