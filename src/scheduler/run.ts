import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BINDING_LASTS_MS } from '../kube/pod-writes.js';
import type { LeaseName } from './election.js';
import { Extender, type ExtenderOptions } from './extender.js';
import type { Offer } from './extender-service.js';
import { CallTurns } from './call-budget.js';
import type { ClusterSource } from './cluster-source.js';
import { ClusterMirror } from './cluster-mirror.js';
import { explainPod, type NodeExplanation } from './explain.js';
import type { Pod } from '../kube/pod.js';
import { viewPod, type PodView } from './pod-view.js';
import { Cluster } from './cluster/cluster.js';
import { policyOf } from './cluster/policy/policies.js';
import type { PolicyName } from './cluster/policy/policy.js';
import { systemClock } from '../host/clock.js';
import { silentLog, type Log } from '../host/log.js';
import { EvictionLimitWatch } from './eviction-limit-watch.js';
import { ClusterWatch } from './cluster-watch.js';
import { FixedSource, readObjects } from './start-state.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Part } from '../host/lifecycle.js';
import { podWriter } from './pod-writer.js';
import { keptAlive } from '../host/keep-alive.js';
import { within } from '../host/within.js';
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

/** Explains where a pod fits: in the cluster of the API server, or in the one that `stateFile` describes. */
export async function explain(options: {
  readonly podFile: string;
  readonly stateFile: string | null;
  readonly kubeconfig: string | null;
  readonly policy: PolicyName;
}): Promise<{
  readonly pod: PodView;
  /** Kind of the workload that creates such pods; null for a pod. */
  readonly workload: string | null;
  readonly nodes: readonly NodeExplanation[];
}> {
  const { wanted: found } = await readObjects(options.podFile);
  const [wanted, another] = found;
  if (wanted === undefined || another !== undefined)
    throw new StartupError(
      `${options.podFile} contains ${found.length} pods and workloads; one Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job or CronJob is explained`,
    );
  const policy = policyOf(options.policy);
  const cluster = new Cluster(policy);
  const mirror = new ClusterMirror(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  if (options.stateFile === null) await keptAlive(() => listLive(options.kubeconfig, mirror));
  else {
    const state = await readObjects(options.stateFile);
    await listed(new FixedSource(state.nodes, state.pods), mirror);
  }
  const pod = asNew(wanted.pod, cluster);
  const budget = new CallTurns().budget(EXPLAIN_LIMITS);
  const nodes = await budget.run(explainPod(cluster, mirror, policy, pod, wanted.pod.tolerations, budget));
  return { pod, workload: wanted.workload, nodes };
}

/** Time limits of an explanation, for whose answer a person waits. */
const EXPLAIN_LIMITS = { cpuMs: 10_000, ms: 30_000 };

/** A pod of a running cluster is explained as if it were new: its own resources count as free. */
function asNew(wanted: Pod, cluster: Cluster): PodView {
  const pod = viewPod({ ...wanted, node: null });
  if (pod.uid !== '') cluster.removePod(pod.uid);
  return pod;
}

async function listLive(kubeconfig: string | null, mirror: ClusterMirror): Promise<void> {
  const client = await openKubeClient(kubeconfig, systemClock);
  try {
    await listed(new ClusterWatch({ client, clock: systemClock, log: silentLog() }), mirror);
  } finally {
    client.close();
  }
}

/** How long an explanation waits for the lists of the API server. */
const LIST_TIMEOUT_MS = 60_000;

async function listed(source: ClusterSource, mirror: ClusterMirror): Promise<void> {
  const synced = new Promise<void>((resolve) => {
    source.start({
      nodeSeen: (node) => mirror.nodeSeen(node),
      nodeGone: (name) => mirror.nodeGone(name),
      podSeen: (pod) => mirror.podSeen(pod),
      podGone: (uid) => mirror.podGone(uid),
      synced: resolve,
    });
  });
  try {
    await within(
      synced,
      LIST_TIMEOUT_MS,
      systemClock,
      () => new Error(`the API server did not list nodes and pods within ${LIST_TIMEOUT_MS / 1000} s`),
    );
  } finally {
    await source.stop();
  }
}
