import { timestamp } from '../json.js';
import { formatAmount } from '../../manifests/quantity.js';
import type {
  GroupGrant,
  GroupLoan,
  GroupSpec,
  Hard,
  Amounts,
  GroupStatus,
  Mode,
  Preemption,
  Reclaim,
} from '../../quota/index.js';
import type { Condition } from '../condition.js';
import type { LabelSelector } from '../../manifests/label-selector.js';
import type { KubeObject } from '../object.js';
import { readDefaultFor, type DefaultFor } from './default-for.js';
import { readNodeLimits, withNodeLimits, type ComputedLimits, type NodeLimit } from './node-limit.js';
import { readWaiting, type WaitingWorkload } from './waiting-workload.js';

/** A BizGroupResourceQuota. */
export interface GroupObject {
  readonly uid: string;
  readonly generation: number;
  /** Its spec, with the limits that the controller computed from nodes. */
  readonly spec: GroupSpec;
  /** Limits that are a part of what nodes have. */
  readonly fromNodes: readonly NodeLimit[];
  /** Namespaces that may use the group; null if not given. */
  readonly namespaceSelector: LabelSelector | null;
  /** Namespaces whose objects without the group label are charged to the group; null for none. */
  readonly defaultFor: DefaultFor | null;
  /** The group's part of lent quota, relative to its siblings. */
  readonly weight: number;
  /** For which of the group's waiting workloads the arbitrator stops workloads of borrowers. */
  readonly reclaim: Reclaim;
  /** Whether its waiting workloads take the room of its own workloads of lower priority. */
  readonly preemption: Preemption;
  /** Workloads that wait for quota, by `refKey`. */
  readonly waiting: ReadonlyMap<string, WaitingWorkload>;
  readonly terminating: boolean;
  readonly finalizers: readonly string[];
  readonly resourceVersion: string;
  /** The status without `waiting`, which has other writers. */
  readonly status: GroupObjectStatus;
  /** Whether deleting the group releases its workloads. */
  readonly force: boolean;
}

export type Quantities = Readonly<Record<string, string>>;

/** A budget, and the hours used since its last reset. */
export interface KubeBudget {
  readonly key: string;
  readonly granted: string;
  readonly used: string;
  readonly left: string;
  /** When the budget is next granted. */
  readonly next?: string;
}

/** The result of a grant in the spec. */
export interface KubeGrant {
  readonly name: string;
  /** Scheduled time of the grant that was given last. */
  readonly given?: string;
  /** Reason of the last refusal. */
  readonly refused?: string;
}

/** Hours that a group had beyond its guaranteed part; older hours count less. Keys are without `cash/`. */
export interface BorrowedHours {
  /** Until when they are counted; RFC 3339 with milliseconds. */
  readonly at: string;
  /** Unit-hours with decimals. */
  readonly hours: Readonly<Record<string, string>>;
  /** All hours of the ledger until then: base units times milliseconds. */
  readonly counted: Readonly<Record<string, string>>;
}

/** Status of a BizGroupResourceQuota. */
export interface GroupObjectStatus {
  readonly observedGeneration?: number;
  readonly hard?: Quantities;
  readonly used?: Quantities;
  readonly selfUsed?: Quantities;
  readonly burnRate?: Quantities;
  readonly uncertain?: Quantities;
  readonly exhaustsAt?: string;
  /** Sum of all budgets, for the columns of kubectl: `700`, or `requests.nvidia.com/gpu=700 limits.cpu=20`. */
  readonly budget?: { readonly granted: string; readonly used: string; readonly left: string; readonly next?: string };
  readonly budgets?: readonly KubeBudget[];
  readonly grants?: readonly KubeGrant[];
  /** Limits from nodes, by key. */
  readonly nodeLimits?: ComputedLimits;
  readonly borrowedHours?: BorrowedHours;
  readonly workloads?: number;
  readonly reservations?: number;
  readonly lastReconcileTime?: string;
  readonly conditions?: readonly Condition[];
}

/** Finalizer that keeps a group until the ledger has released it. */
export const GROUP_FINALIZER = 'quota.gpu-manager.io/books';

/**
 * Annotation, `true`: deleting the group releases its workloads, and lowering it may go below its children's quotas.
 */
const FORCE_ANNOTATION = 'biz.group.resource.quota/force';

/** Reads a BizGroupResourceQuota; the engine validates the quantities. */
export function readGroup(object: unknown): GroupObject {
  const { metadata, spec, status } = object as KubeObject;
  const { waiting, ...reported } = (status ?? {}) as GroupObjectStatus & { readonly waiting?: unknown };
  const {
    parentBizGroup,
    hard,
    mode,
    borrow,
    lend,
    grants,
    loans,
    namespaceSelector,
    defaultFor,
    weight,
    reclaim,
    preemption,
    fromNodes: written,
  } = (spec ?? {}) as {
    readonly parentBizGroup?: string;
    readonly hard?: Hard;
    readonly mode?: Mode;
    readonly borrow?: Hard;
    readonly lend?: Hard;
    readonly grants?: readonly GroupGrant[];
    readonly namespaceSelector?: LabelSelector;
    readonly defaultFor?: unknown;
    readonly loans?: readonly GroupLoan[];
    readonly weight?: number;
    readonly reclaim?: Reclaim;
    readonly preemption?: Preemption;
    readonly fromNodes?: unknown;
  };
  const fromNodes = readNodeLimits(written);
  return {
    uid: metadata?.uid ?? '',
    generation: metadata?.generation ?? 0,
    resourceVersion: metadata?.resourceVersion ?? '',
    spec: {
      name: metadata?.name ?? '',
      parent: parentBizGroup ?? '',
      hard: withNodeLimits(hard ?? {}, fromNodes, reported.nodeLimits ?? {}),
      mode,
      borrow,
      lend,
      grants: grants ?? [],
      loans: loans ?? [],
    },
    fromNodes,
    namespaceSelector: namespaceSelector ?? null,
    defaultFor: readDefaultFor(defaultFor),
    weight: weight ?? 1,
    reclaim: reclaim ?? 'Never',
    preemption: preemption ?? 'Never',
    waiting: readWaiting(waiting),
    terminating: metadata?.deletionTimestamp !== undefined,
    finalizers: metadata?.finalizers ?? [],
    status: reported,
    force: metadata?.annotations?.[FORCE_ANNOTATION] === 'true',
  };
}

/** Formats amounts as quantities. */
function quantitiesOf(amounts: Amounts): Quantities {
  return Object.fromEntries([...amounts].map(([key, amount]) => [key, formatAmount(key, amount)]));
}

/** The budget fields of a group's status; empty for a group without budgets. */
function budgetsOf({ budgets, grants }: GroupStatus): Pick<GroupObjectStatus, 'budget' | 'budgets' | 'grants'> {
  if (budgets.length === 0) return {};
  const listed = budgets.map(({ key, granted, used, left, nextGrantAt }): KubeBudget => ({
    key,
    granted: formatAmount(key, granted),
    used: formatAmount(key, used),
    left: formatAmount(key, left),
    ...(nextGrantAt === null ? {} : { next: timestamp(nextGrantAt) }),
  }));
  const column = (what: 'granted' | 'used' | 'left'): string =>
    listed.length === 1
      ? (listed[0]?.[what] ?? '')
      : listed.map((budget) => `${budget.key.slice('cash/'.length)}=${budget[what]}`).join(' ');
  const next = listed.flatMap((budget) => budget.next ?? []).sort()[0];
  return {
    budget: {
      granted: column('granted'),
      used: column('used'),
      left: column('left'),
      ...(next === undefined ? {} : { next }),
    },
    budgets: listed,
    ...(grants.length === 0
      ? {}
      : {
          grants: grants.map(({ name, begun, refused }): KubeGrant => ({
            name,
            ...(begun === null ? {} : { given: timestamp(begun) }),
            ...(refused === '' ? {} : { refused: refused.slice(0, 1000) }),
          })),
        }),
  };
}

/** The usage fields of a group's status. */
export function usageOf(
  status: GroupStatus,
): Omit<GroupObjectStatus, 'observedGeneration' | 'exhaustsAt' | 'lastReconcileTime' | 'conditions'> {
  return {
    hard: quantitiesOf(status.hard),
    used: quantitiesOf(status.used),
    selfUsed: quantitiesOf(status.selfUsed),
    ...(status.uncertain.size === 0 ? {} : { uncertain: quantitiesOf(status.uncertain) }),
    burnRate: Object.fromEntries(
      [...status.burnRate].map(([key, rate]) => [key, formatAmount(key.slice('cash/'.length), rate)]),
    ),
    ...budgetsOf(status),
    workloads: status.workloads,
    reservations: status.reservations,
  };
}
