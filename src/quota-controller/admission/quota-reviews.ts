import type { AdmissionResponse, Review } from '../../kube/admission/review.js';
import type { KubeApi } from '../../kube/client.js';
import type { QuotaEngine } from '../../quota/internal.js';
import type { ClusterFacts } from '../policy/cluster-facts.js';
import type { Reconciler } from '../reconciler/reconciler.js';
import type { WaitingWorkloads } from '../give-back/waiting-workloads.js';
import type { WorkloadReader } from '../workloads/workload-reader.js';
import { ConsumerReview } from './consumer-review.js';
import { GroupReview } from './group-review.js';
import { NamespaceAccess } from '../policy/namespace-access.js';
import { WorkloadReview } from './workload-review.js';

export interface QuotaReviewsOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly reader: WorkloadReader;
  readonly reconciler: Reconciler;
  /** The workloads that wait for quota; null without an arbitrator. */
  readonly waiting?: WaitingWorkloads | null;
  readonly facts: ClusterFacts;
  /** Whether every namespace may use a group if no group on its path to the root has a namespaceSelector. */
  readonly isOpenByDefault: boolean;
  /** How long an admission is reserved until its object is observed. */
  readonly reservationMs: number;
}

/** The reviews of the quota webhooks, by path. */
export function quotaReviews(
  options: QuotaReviewsOptions,
): Readonly<Record<string, (review: Review) => Promise<AdmissionResponse>>> {
  const { api, facts, reconciler, isOpenByDefault } = options;
  const access = new NamespaceAccess({ api, observed: (name) => reconciler.group(name), isOpenByDefault });
  const workloads = workloadReview(options, access);
  const groups = groupReview(options, access);
  const consumers = new ConsumerReview({
    api,
    nodes: () => facts.nodes(),
    storageCapacity: () => facts.policy.storageCapacity,
  });
  return {
    '/groups': (review) => groups.decide(review),
    '/workloads': (review) => workloads.decide(review),
    '/unlabelled': (review) => workloads.unlabelled(review),
    '/scale': (review) => workloads.scale(review),
    '/consumers': (review) => consumers.decide(review),
    '/resize': (review) => workloads.resize(review),
    '/inherit': (review) => workloads.inherit(review),
    '/autoscalers': (review) => workloads.autoscaler(review),
  };
}

function workloadReview(options: QuotaReviewsOptions, access: NamespaceAccess): WorkloadReview {
  const { engine, reader, reconciler, reservationMs, waiting = null } = options;
  return new WorkloadReview({
    waiting,
    engine,
    reader,
    access,
    reservationMs,
    endEarlier: (key, uid) => reconciler.endEarlier(key, uid),
    settleLimits: (group) => reconciler.settleLimits(group),
    withRunning: (demand) => reconciler.withRunning(demand),
    observedVersion: (uid) => reconciler.workloadOf(uid)?.version ?? null,
    admitted: (uid) => reconciler.admitted(uid),
  });
}

function groupReview(options: QuotaReviewsOptions, access: NamespaceAccess): GroupReview {
  const { engine, api, reconciler, facts, reservationMs, isOpenByDefault } = options;
  return new GroupReview({
    isOpenByDefault,
    defaultGroups: facts.defaultGroups,
    engine,
    api,
    observed: (name) => reconciler.group(name),
    access,
    reserved: (group) => reconciler.awaitLimits(group),
    settleLimits: (group) => reconciler.settleLimits(group),
    reservationMs,
    chargeable: () => ({
      kinds: facts.policy.kinds,
      families: facts.policy.families,
      resources: new Set(facts.nodes().flatMap(({ allocatable }) => [...allocatable.keys()])),
    }),
  });
}
