/** What the console tells browsers: rows of tables, as plain values for JSON. */

/** One GPU of a node. */
export interface GpuRow {
  readonly index: number;
  /** Index in the node's `kinds`. */
  readonly kind: number;
  /** Hundredths of the GPU, and bytes, that are given to containers of any namespace. */
  readonly givenCores: number;
  readonly givenMemoryBytes: number;
  /** Why pods do not get it; absent for a healthy GPU. */
  readonly problem?: string;
  /** Its MIG profile, if it is an instance. */
  readonly profile?: string;
}

export interface GpuKind {
  readonly model: string;
  readonly memoryBytes: number;
}

/** Figures of a node that may be old. */
export interface LateRow {
  readonly why: string;
  /** Time of the figures, milliseconds since 1970; absent if nobody says. */
  readonly sinceMs?: number;
}

/** A node with GPUs. */
export interface NodeRow {
  readonly name: string;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  /** What somebody should do something about; absent if there is nothing. */
  readonly problem?: string;
  /** Absent while its agent runs. */
  readonly late?: LateRow;
  readonly kinds: readonly GpuKind[];
  readonly gpus: readonly GpuRow[];
}

/** A part of one GPU, or a whole one, that a container has or will have. */
export interface SliceRow {
  readonly container: string;
  /** Index of the GPU on the node; null while it is not known. */
  readonly gpu: number | null;
  readonly cores: number;
  /** 0: all memory of the GPU. */
  readonly memoryBytes: number;
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
  /** Since when it is in this state, milliseconds since 1970; absent if it does not say. */
  readonly sinceMs?: number;
  /** Kind and name of its controller. */
  readonly workload?: string;
  readonly priority: number;
  /** Why it waits, or why it was refused; absent if it runs. */
  readonly why?: string;
  readonly slices: readonly SliceRow[];
}

/** The tables of the console, and the rows in them. */
export interface Tables {
  readonly nodes: NodeRow;
  readonly pods: PodRow;
}
