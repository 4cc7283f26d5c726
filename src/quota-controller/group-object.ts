import { formatAmount } from '../quota/core/decision.js';
import type { GroupSpec, Hard } from '../quota/core/group-spec.js';
import type { Amounts, GroupStatus } from '../quota/core/status.js';
import type { Mode } from '../quota/core/group.js';
import type { Condition } from '../kube/condition.js';
import type { KubeObject } from './object.js';

/** A group as its BizGroupResourceQuota has it. */
export interface GroupObject {
  readonly uid: string;
  readonly generation: number;
  readonly spec: GroupSpec;
  readonly terminating: boolean;
  readonly finalizers: readonly string[];
  readonly resourceVersion: string;
  readonly status: GroupObjectStatus;
  /** Its deletion releases its workloads. */
  readonly force: boolean;
}

export type Quantities = Readonly<Record<string, string>>;

/** Status of a BizGroupResourceQuota. */
export interface GroupObjectStatus {
  readonly observedGeneration?: number;
  readonly hard?: Quantities;
  readonly used?: Quantities;
  readonly selfUsed?: Quantities;
  readonly burnRate?: Quantities;
  readonly uncertain?: Quantities;
  readonly exhaustsAt?: string;
  readonly workloads?: number;
  readonly reservations?: number;
  readonly lastReconcileTime?: string;
  readonly conditions?: readonly Condition[];
}

/** Keeps a group whose parts still stand in the ledger from going. */
export const GROUP_FINALIZER = 'quota.gpu-manager.io/books';

/** Annotation, `true`: deleting the group releases its workloads; lowering it may go below what its children have. */
export const FORCE_ANNOTATION = 'biz.group.resource.quota/force';

/** Reads a BizGroupResourceQuota; quantities are looked at by the engine. */
export function readGroup(object: unknown): GroupObject {
  const { metadata, spec, status } = object as KubeObject;
  const { parentBizGroup, hard, mode, borrow, lend } = (spec ?? {}) as {
    readonly parentBizGroup?: string;
    readonly hard?: Hard;
    readonly mode?: Mode;
    readonly borrow?: Hard;
    readonly lend?: Hard;
  };
  return {
    uid: metadata?.uid ?? '',
    generation: metadata?.generation ?? 0,
    resourceVersion: metadata?.resourceVersion ?? '',
    spec: { name: metadata?.name ?? '', parent: parentBizGroup ?? '', hard: hard ?? {}, mode, borrow, lend },
    terminating: metadata?.deletionTimestamp !== undefined,
    finalizers: metadata?.finalizers ?? [],
    status: status ?? {},
    force: metadata?.annotations?.[FORCE_ANNOTATION] === 'true',
  };
}

/** Amounts in the units of people. */
export function quantitiesOf(amounts: Amounts): Quantities {
  return Object.fromEntries([...amounts].map(([key, amount]) => [key, formatAmount(key, amount)]));
}

/** What a group's status says of its use. */
export function usageOf(
  status: GroupStatus,
): Pick<GroupObjectStatus, 'hard' | 'used' | 'selfUsed' | 'uncertain' | 'burnRate' | 'workloads' | 'reservations'> {
  return {
    hard: quantitiesOf(status.hard),
    used: quantitiesOf(status.used),
    selfUsed: quantitiesOf(status.selfUsed),
    ...(status.uncertain.size === 0 ? {} : { uncertain: quantitiesOf(status.uncertain) }),
    burnRate: Object.fromEntries(
      [...status.burnRate].map(([key, rate]) => [key, formatAmount(key.slice('cash/'.length), rate)]),
    ),
    workloads: status.workloads,
    reservations: status.reservations,
  };
}
