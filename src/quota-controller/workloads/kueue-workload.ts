import { refKey, type Evaluator } from '../../quota/internal.js';
import type { KubeObject, OwnerReference } from '../../kube/object.js';

/** Kueue's API group. */
export const KUEUE = 'kueue.x-k8s.io';

/** The controller name of an AdmissionCheck that asks this quota. */
export const CHECK_CONTROLLER = 'quota.gpu-manager.io/admission-check';

/** Label of objects that Kueue admits. */
export const QUEUE_LABEL = `${KUEUE}/queue-name`;

/** Label of a Workload with the uid of its job. */
export const JOB_UID_LABEL = `${KUEUE}/job-uid`;

/** Label of pods that Kueue admits together; their Workload has this name. */
export const POD_GROUP_LABEL = `${KUEUE}/pod-group-name`;

export type CheckState = 'Pending' | 'Ready' | 'Retry' | 'Rejected';

/** The answer of an AdmissionCheck about a Workload. */
export interface CheckEntry {
  readonly name: string;
  readonly state: CheckState;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** The fields of Kueue's Workload that decisions need. */
export interface Workload {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Key by `refKey`, the name in the ledger. */
  readonly key: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly owners: readonly OwnerReference[];
  readonly priority: number;
  /** When Kueue reserved its quota. */
  readonly reservedAt: string;
  readonly checks: readonly CheckEntry[];
  readonly isActive: boolean;
  /** Kueue reserves its quota. */
  readonly isReserved: boolean;
  /** Kueue stops it; its quota stays reserved until its pods are gone. */
  readonly isEvicted: boolean;
  readonly isFinished: boolean;
  readonly isTerminating: boolean;
  /** Names of its pod sets. */
  readonly podSets: readonly string[];
  /** Group and types that are charged for it, as labels; empty if it is not charged. */
  readonly chargedTo: Readonly<Record<string, string>>;
}

/** The manifest that the API server validated. */
interface WorkloadManifest extends KubeObject {
  readonly spec?: {
    readonly active?: boolean;
    readonly priority?: number;
    readonly podSets?: readonly { readonly name: string; readonly count: number; readonly template: unknown }[];
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime?: string;
    }[];
    readonly admission?: {
      readonly podSetAssignments?: readonly { readonly name: string; readonly count?: number }[];
    };
    readonly reclaimablePods?: readonly { readonly name: string; readonly count: number }[];
    readonly admissionChecks?: readonly (CheckEntry & {
      readonly podSetUpdates?: readonly { readonly annotations?: Readonly<Record<string, string>> }[];
    })[];
  };
}

export function readKueueWorkload(object: unknown): Workload | null {
  const { metadata, spec, status } = object as WorkloadManifest;
  if (metadata?.uid === undefined || metadata.name === undefined) return null;
  const { uid, name, namespace = '', resourceVersion = '', generation = 0, ownerReferences = [] } = metadata;
  const condition = (type: string): { readonly status: string; readonly lastTransitionTime?: string } | undefined =>
    status?.conditions?.find((each) => each.type === type);
  const reserved = condition('QuotaReserved');
  const workload = {
    uid,
    namespace,
    name,
    key: refKey({ kind: `Workload.${KUEUE}`, namespace, name }),
    resourceVersion,
    generation,
    owners: ownerReferences,
    priority: spec?.priority ?? 0,
    reservedAt: reserved?.lastTransitionTime ?? '',
    checks: (status?.admissionChecks ?? []).map(({ name: check, state, message, lastTransitionTime }) => ({
      name: check,
      state,
      message,
      lastTransitionTime,
    })),
    isActive: spec?.active !== false,
    isReserved: reserved?.status === 'True',
    isEvicted: condition('Evicted')?.status === 'True',
    isFinished: condition('Finished')?.status === 'True',
    isTerminating: metadata.deletionTimestamp !== undefined,
    podSets: (spec?.podSets ?? []).map(({ name: podSet }) => podSet),
  };
  // The AdmissionCheck records in its answer what it has charged, and keeps the record when it takes the Workload back.
  // Kueue clears the answer when it evicts the Workload.
  const isHeld = workload.isReserved && !workload.isEvicted && !workload.isFinished && !workload.isTerminating;
  const charged = isHeld
    ? (status?.admissionChecks ?? []).filter(({ state }) => state === 'Ready' || state === 'Retry')
    : [];
  const annotations = charged.flatMap(({ podSetUpdates = [] }) => podSetUpdates.map((update) => update.annotations));
  return { ...workload, chargedTo: Object.assign({}, ...annotations) as Readonly<Record<string, string>> };
}

/** Whether the quota may decide now. An answer to a Workload that Kueue stops would leave it stuck. */
export function isDecidable(workload: Workload): boolean {
  const { isActive, isReserved, isEvicted, isFinished, isTerminating } = workload;
  return isActive && isReserved && !isEvicted && !isFinished && !isTerminating;
}

/**
 * A Workload is charged from the answer Ready of the AdmissionCheck until Kueue finishes or deletes it, or has stopped
 * it and needs its quota no longer. Its labels are those that the answer records.
 */
export const WORKLOAD_KIND: Evaluator = {
  apiGroup: KUEUE,
  kind: 'Workload',
  resource: `workloads.${KUEUE}`,
  charges: true,
  labels: (_reader, object) => new Map(Object.entries(readKueueWorkload(object)?.chargedTo ?? {})),
  // Kueue takes the answer back when it stops a Workload, and its own quota when the pods are gone.
  isHeld: (_reader, object) => {
    const workload = readKueueWorkload(object);
    return workload !== null && workload.isReserved && workload.isEvicted && !workload.isFinished;
  },
  pods: (_reader, object) => {
    const { spec, status } = object as WorkloadManifest;
    // Kueue may admit fewer pods than a Workload asks for, and needs no quota for those that have ended.
    const admitted = new Map(
      (status?.admission?.podSetAssignments ?? []).map(({ name, count }) => [name, count] as const),
    );
    const ended = new Map((status?.reclaimablePods ?? []).map(({ name, count }) => [name, count] as const));
    return (spec?.podSets ?? []).map(({ name, count, template }, index) => ({
      name,
      count: Math.max(0, (admitted.get(name) ?? count) - (ended.get(name) ?? 0)),
      template,
      path: `spec.podSets[${index}].template`,
    }));
  },
};
