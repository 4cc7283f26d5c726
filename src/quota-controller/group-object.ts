import { timestamp } from '../kube/json.js';
import { formatAmount } from '../quota/core/decision.js';
import type { GroupGrant } from '../quota/core/declared-grant.js';
import type { GroupLoan } from '../quota/core/declared-loan.js';
import type { GroupSpec, Hard } from '../quota/core/group-spec.js';
import type { Amounts, GroupStatus } from '../quota/core/status.js';
import type { Mode } from '../quota/core/group.js';
import type { Condition } from '../kube/condition.js';
import type { LabelSelector } from '../kube/label-selector.js';
import type { KubeObject } from './object.js';

/** A group as its BizGroupResourceQuota has it. */
export interface GroupObject {
  readonly uid: string;
  readonly generation: number;
  readonly spec: GroupSpec;
  /** Namespaces that may use it; null where it does not say. */
  readonly namespaceSelector: LabelSelector | null;
  readonly terminating: boolean;
  readonly finalizers: readonly string[];
  readonly resourceVersion: string;
  readonly status: GroupObjectStatus;
  /** Its deletion releases its workloads. */
  readonly force: boolean;
}

export type Quantities = Readonly<Record<string, string>>;

/** What a budget has, of which the hours since it was reset last are used. */
export interface KubeBudget {
  readonly key: string;
  readonly granted: string;
  readonly used: string;
  readonly left: string;
  /** When cash is granted next. */
  readonly next?: string;
}

/** What became of a grant of the specification. */
export interface KubeGrant {
  readonly name: string;
  /** The time of it that was given last. */
  readonly given?: string;
  /** Why it was refused last. */
  readonly refused?: string;
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
  /** Of all budgets, for the columns of kubectl: `700`, or `requests.nvidia.com/gpu=700 limits.cpu=20`. */
  readonly budget?: { readonly granted: string; readonly used: string; readonly left: string; readonly next?: string };
  readonly budgets?: readonly KubeBudget[];
  readonly grants?: readonly KubeGrant[];
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
  const { parentBizGroup, hard, mode, borrow, lend, grants, loans, namespaceSelector } = (spec ?? {}) as {
    readonly parentBizGroup?: string;
    readonly hard?: Hard;
    readonly mode?: Mode;
    readonly borrow?: Hard;
    readonly lend?: Hard;
    readonly grants?: readonly GroupGrant[];
    readonly namespaceSelector?: LabelSelector;
    readonly loans?: readonly GroupLoan[];
  };
  return {
    uid: metadata?.uid ?? '',
    generation: metadata?.generation ?? 0,
    resourceVersion: metadata?.resourceVersion ?? '',
    spec: {
      name: metadata?.name ?? '',
      parent: parentBizGroup ?? '',
      hard: hard ?? {},
      mode,
      borrow,
      lend,
      grants: grants ?? [],
      loans: loans ?? [],
    },
    namespaceSelector: namespaceSelector ?? null,
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

/** What a group's status says of its budgets; nothing of a group without. */
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

/** What a group's status says of its use. */
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
