/** Rows of tables that the console sends to browsers, as plain values for JSON. */

/** One GPU of a node. */
export interface GpuRow {
  readonly index: number;
  /** Index in the node's `kinds`. */
  readonly kind: number;
  /** Cores, and bytes, that are given to containers of any namespace. */
  readonly allocatedCores: number;
  readonly allocatedMemoryBytes: number;
  /** Why pods do not get it; absent for a healthy GPU. */
  readonly problem?: string;
  /** Whether only resource claims get it; absent for others. */
  readonly byClaims?: boolean;
  /** Its MIG profile, if it is an instance. */
  readonly profile?: string;
  /** Percent, as its agent told in the last minutes; absent while that is not known. */
  readonly usedPercent?: number;
}

export interface GpuKind {
  readonly model: string;
  readonly memoryBytes: number;
}

/** Figures of a node that may be old. */
export interface LateRow {
  readonly why: string;
  /** Time of the figures, milliseconds since 1970; absent if unknown. */
  readonly sinceMs?: number;
}

/** A node with GPUs. */
export interface NodeRow {
  readonly name: string;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  /** A problem that needs an operator; absent without one. */
  readonly problem?: string;
  /** Absent while its agent runs. */
  readonly late?: LateRow;
  readonly kinds: readonly GpuKind[];
  readonly gpus: readonly GpuRow[];
}

/** A part of one GPU, or a whole one, that a container has or will have. */
export interface SliceRow {
  /** Empty for a slice of a claim, which may be of several containers. */
  readonly container: string;
  /** Index of the GPU on the node; null while it is not known. */
  readonly gpu: number | null;
  readonly cores: number;
  /** 0: all memory of the GPU. */
  readonly memoryBytes: number;
  /** Name of the resource claim that gives it, in the namespace of the pod; absent for one of the device plugin. */
  readonly claim?: string;
}

export type PodState = 'waiting' | 'starting' | 'running' | 'ending' | 'refused';

/** A pod that requests GPUs. */
export interface PodRow {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Absent while no node is chosen. */
  readonly node?: string;
  readonly state: PodState;
  /** Since when it is in this state, milliseconds since 1970; absent if unknown. */
  readonly sinceMs?: number;
  /** Kind and name of its controller. */
  readonly workload?: string;
  readonly priority: number;
  /** Why it waits, or why it was refused; absent if it runs. */
  readonly why?: string;
  /** Node on which the arbitrator or the scheduler makes room for it; absent for a pod with a node, and without one. */
  readonly nominatedNode?: string;
  /** Names of its resource claims; absent without one. */
  readonly claims?: readonly string[];
  readonly slices: readonly SliceRow[];
  /** Percent of one GPU that it uses, in sum over its GPUs; absent while that is not known. */
  readonly usedPercent?: number;
  /** When it used a GPU last, milliseconds since 1970; null if it never did; absent while that is not known. */
  readonly lastUsedMs?: number | null;
  /** Name of its quota group; absent without one. */
  readonly group?: string;
  /** Resources of other projects by which a waiting pod asks for GPUs, with amounts; absent for other pods. */
  readonly foreign?: readonly string[];
}

/** Limit and usage of one key of a quota group, as quantities. */
export interface LimitRow {
  readonly key: string;
  readonly hard: string;
  /** Absent until the quota service has reported; it includes descendants. */
  readonly used?: string;
  /** Without descendants. */
  readonly selfUsed?: string;
  /** `used` as a part of `hard`; absent where either is missing or `hard` is 0. */
  readonly part?: number;
}

/** Hours of one key of a quota group: what was granted, what is used. */
export interface HoursRow extends LimitRow {
  readonly left?: string;
  /** Hours that are used in an hour now. */
  readonly rate?: string;
  /** When hours are next granted, milliseconds since 1970. */
  readonly nextMs?: number;
}

/** A group of the quota tree. */
export interface GroupRow {
  readonly name: string;
  /** Empty for a root. */
  readonly parent: string;
  readonly isElastic: boolean;
  readonly limits: readonly LimitRow[];
  readonly hours: readonly HoursRow[];
  /** When the first of its budgets is used up at the present rate, milliseconds since 1970. */
  readonly exhaustsAtMs?: number;
  readonly workloads: number;
  readonly reservations: number;
  /** Problems that need attention, as sentences or phrases. */
  readonly notes: readonly string[];
}

/** One resource of a consumer, as quantities; absent amounts are not limited, or 0. */
export interface ShareAmounts {
  readonly resource: string;
  readonly hard?: string;
  readonly reserved?: string;
  readonly deserved?: string;
  readonly allocated?: string;
  readonly pending?: string;
  readonly isOverused: boolean;
}

/** A consumer of the arbitrator: its fair share, what it uses, and what the arbitrator plans. */
export interface ShareRow {
  readonly name: string;
  /** Its area; empty for none. */
  readonly parent: string;
  readonly weight: number;
  readonly isSystem: boolean;
  readonly amounts: readonly ShareAmounts[];
  /** Usage of the resource that it uses most of, as a part of the cluster; absent without an Allocation. */
  readonly part?: number;
  /** When the arbitrator begins to evict its pods, milliseconds since 1970; absent unless others wait. */
  readonly reclaimAtMs?: number;
  /** Consumers for which its pods were evicted last. */
  readonly reclaimedFor: readonly { readonly name: string; readonly atMs: number }[];
  readonly notes: readonly string[];
}

/** An event that a program of this project reported. */
export interface EventRow {
  readonly uid: string;
  /** Namespace of the event, whose readers may see it. */
  readonly namespace: string;
  readonly level: 'info' | 'warning';
  /** The reason, one word in CamelCase. */
  readonly kind: string;
  readonly message: string;
  readonly count: number;
  readonly atMs: number;
  /** The object of the event; the namespace is empty for an object of the cluster. */
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
}

/** One device of a claim. */
export interface ClaimDevice {
  readonly request: string;
  readonly device: string;
  /** Absent for a pool of no known node. */
  readonly node?: string;
  /** Index of the GPU on the node; null if the node's inventory does not have the device. */
  readonly gpu: number | null;
  readonly cores: number;
  /** 0: all memory of the GPU. */
  readonly memoryBytes: number;
}

/** A resource claim with devices of this driver, or one that asks for them. */
export interface ClaimRow {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly state: 'waiting' | 'allocated' | 'reserved';
  readonly createdAtMs?: number;
  /** Why it waits; absent for one with devices. */
  readonly why?: string;
  /** Its requests: device classes, cores and memory of all devices. */
  readonly asks: { readonly classes: readonly string[]; readonly cores: number; readonly memoryBytes: number };
  readonly devices: readonly ClaimDevice[];
  /** Names of the pods that it is reserved for. */
  readonly pods: readonly string[];
}

/** The tables of the console, and the rows in them. */
export interface Tables {
  readonly nodes: NodeRow;
  readonly pods: PodRow;
  readonly groups: GroupRow;
  readonly shares: ShareRow;
  readonly events: EventRow;
  readonly claims: ClaimRow;
}
