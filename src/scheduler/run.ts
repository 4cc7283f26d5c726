import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BINDING_LASTS_MS } from '../kube/pod-writes.js';
import type { LeaseName } from './election.js';
import { Extender, type ExtenderOptions } from './extender.js';
import type { Offer } from './extender-service.js';
import { CallTurns } from './call-budget.js';
import { ClusterMirror } from './cluster-mirror.js';
import { ALL_NODES, ALL_PODS } from '../kube/api-path.js';
import type { KubeApi } from '../kube/client.js';
import { listKept } from '../kube/list-all.js';
import { readNode, type Node } from '../kube/node.js';
import { readPod, type Pod } from '../kube/pod.js';
import { knownPods, whyWaiting, type KnownPod, type WaitingAnswer } from './why-waiting.js';
import { Cluster } from './cluster/cluster.js';
import { policyOf } from './cluster/policy/policies.js';
import type { PolicyName } from './cluster/policy/policy.js';
import { systemClock } from '../host/clock.js';
import { silentLog, type Log } from '../host/log.js';
import { EvictionLimitWatch } from './eviction-limit-watch.js';
import { ClusterWatch } from './cluster-watch.js';
import { readObjects } from './start-state.js';
import { CertificateFiles } from '../http/certificate-files.js';
import { openKubeClient } from '../kube/open-client.js';
import type { Part } from '../host/lifecycle.js';
import { podWriter } from './pod-writer.js';
import { keptAlive } from '../host/keep-alive.js';
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
  readonly answer: WaitingAnswer;
  /** Kind of the workload that creates such pods; null for a pod. */
  readonly workload: string | null;
}> {
  const { wanted: found } = await readObjects(options.podFile);
  const [wanted, another] = found;
  if (wanted === undefined || another !== undefined)
    throw new StartupError(
      `${options.podFile} contains ${found.length} pods and workloads; one Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job or CronJob is explained`,
    );
  const state =
    options.stateFile === null
      ? await keptAlive(() => readLive(options.kubeconfig))
      : await readObjects(options.stateFile);
  return { answer: await explainIn(state, wanted.pod, options.policy), workload: wanted.workload };
}

/** The nodes and pods of a cluster. */
export interface ClusterState {
  readonly nodes: readonly Node[];
  readonly pods: readonly KnownPod[];
}

/** Explains why a pod waits, or where it fits, in a cluster with this state. */
export async function explainIn(state: ClusterState, wanted: Pod, policyName: PolicyName): Promise<WaitingAnswer> {
  const policy = policyOf(policyName);
  const cluster = new Cluster(policy);
  const mirror = new ClusterMirror(cluster, silentLog(), { adopted: () => undefined, named: () => undefined });
  for (const [at, node] of state.nodes.entries()) {
    if (at % SEEN_A_TURN === 0) await nextTurn();
    mirror.nodeSeen(node);
  }
  for (const [at, { view }] of state.pods.entries()) {
    if (at % SEEN_A_TURN === 0) await nextTurn();
    mirror.podSeen(view);
  }
  const budget = new CallTurns().budget(EXPLAIN_LIMITS);
  return budget.run(whyWaiting({ cluster, mirror, policy, nowMs: systemClock.now() }, wanted, state.pods, budget));
}

/** Objects that are applied before others of the process get a turn. */
const SEEN_A_TURN = 200;
/** Time limits of an explanation, for whose answer a person waits. */
const EXPLAIN_LIMITS = { cpuMs: 10_000, ms: 30_000 };

/** Lists all nodes and pods. Rejects with a `KubeError`. */
export async function readState(api: KubeApi): Promise<ClusterState> {
  const known = knownPods();
  const [nodes, pods] = await Promise.all([
    listKept(api, 'the nodes', ALL_NODES, readNode),
    listKept(api, 'the pods', ALL_PODS, (object) => known(readPod(object))),
  ]);
  return { nodes: nodes.flatMap((node) => node ?? []), pods };
}

async function readLive(kubeconfig: string | null): Promise<ClusterState> {
  const client = await openKubeClient(kubeconfig, systemClock);
  try {
    return await readState(client);
  } finally {
    client.close();
  }
}
