import type { LabelSelector } from '../../manifests/label-selector.js';
import type { GroupGrant, GroupLoan, Mode, Preemption, Reclaim } from '../../quota/index.js';
import type { KubeObject } from '../object.js';
import type { AllocationStatus } from './allocation-object.js';
import type { ConsumerStatus } from './consumer-object.js';
import type { GroupObjectStatus } from './group-object.js';

/*
 * The quota objects as the API server has them (etc/quota/crds.yaml), for programs of others. The API server has
 * validated them; quantities stay as they are written.
 */

/** A quota object: its name is unique in the cluster. */
export interface QuotaObject<Spec, Status> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: NonNullable<KubeObject['metadata']> & { readonly name: string; readonly uid: string };
  readonly spec: Spec;
  /** Absent until the service has written it. */
  readonly status?: Status;
}

/** Quantities by resource or key, such as `{ cpu: '500m' }`. */
export type WrittenQuantities = Readonly<Record<string, string | number>>;

export interface GroupFields {
  readonly parentBizGroup?: string;
  readonly hard: WrittenQuantities;
  readonly fromNodes?: readonly {
    readonly key: string;
    readonly percent: number;
    readonly nodeSelector?: LabelSelector;
    readonly min?: string | number;
    readonly max?: string | number;
    readonly shrinkAfterSeconds?: number;
  }[];
  readonly namespaceSelector?: LabelSelector;
  readonly defaultFor?: { readonly namespaces?: readonly string[]; readonly namespaceSelector?: LabelSelector };
  readonly mode?: Mode;
  readonly borrow?: WrittenQuantities;
  readonly lend?: WrittenQuantities;
  readonly weight?: number;
  readonly reclaim?: Reclaim;
  readonly preemption?: Preemption;
  readonly grants?: readonly GroupGrant[];
  readonly loans?: readonly GroupLoan[];
}

export interface GroupReport extends GroupObjectStatus {
  /** Workloads that wait for quota, by kind, namespace and name. Times are RFC 3339. */
  readonly waiting?: Readonly<
    Record<
      string,
      {
        readonly amounts: WrittenQuantities;
        readonly priority?: number;
        readonly since: string;
        readonly asked: string;
        readonly room?: 'Kept' | 'Next';
        readonly stopped?: { readonly replicas?: number };
      }
    >
  >;
}

export interface ConsumerFields {
  readonly hard?: WrittenQuantities;
  readonly reserved?: WrittenQuantities;
  readonly weight?: number;
  readonly parent?: string;
  readonly preemption?: Preemption;
  readonly system?: boolean;
}

/** Labels or annotations of nodes of a type, each with its values. */
type NamedValues = readonly { readonly key: string; readonly values: readonly string[] }[];

export interface PolicyFields {
  readonly strictTypes?: boolean;
  readonly surge?: boolean;
  readonly storageCapacity?: WrittenQuantities;
  readonly shareLimits?: { readonly percent: number };
  readonly evictBeyondQuotaFirst?: boolean;
  readonly borrowedHours?: { readonly halfLifeHours: number };
  readonly requireLabel?: { readonly namespaceSelector: LabelSelector };
  readonly consumers?: readonly { readonly namespaceSelector: LabelSelector; readonly spec: ConsumerFields }[];
  readonly families?: readonly { readonly name: string; readonly resources: readonly string[] }[];
  readonly types?: readonly {
    readonly name: string;
    readonly family?: string;
    readonly memory?: string;
    readonly nodeLabels?: NamedValues;
    readonly annotations?: NamedValues;
    readonly deviceClasses?: readonly string[];
  }[];
  readonly kinds?: readonly {
    readonly apiGroup: string;
    readonly kind: string;
    readonly plural: string;
    readonly suspend?: string;
    readonly done?: { readonly field: string; readonly values: readonly string[] };
    readonly pods: readonly {
      readonly name?: string;
      readonly each?: string;
      readonly replicas?: string;
      readonly defaultReplicas?: number;
      readonly template: string;
    }[];
  }[];
}

/** A business group and its limits (BizGroupResourceQuota). */
export type Group = QuotaObject<GroupFields, GroupReport>;
/** The limits of a namespace, by its name. */
export type Consumer = QuotaObject<ConsumerFields, ConsumerStatus>;
/** What the arbitrator gave a namespace, by its name. An Allocation has no spec. */
export type Allocation = QuotaObject<undefined, AllocationStatus>;
/** How workloads are charged; the one named `default` is in effect. */
export type Policy = QuotaObject<PolicyFields, ConsumerStatus>;
