/** One process of a container on one of its GPUs. Null: not known, because the process has ended or is not visible. */
export interface ProcessSnapshot {
  readonly gpuUuid: string;
  readonly gpuIndex: number;
  /** On the host. */
  readonly pid: number;
  /** In the container. */
  readonly containerPid: number | null;
  /** Its effective user on the host: number, and name if the host has one. */
  readonly uid: number | null;
  readonly user: string | null;
  /**
   * Its arguments, separated by spaces, cut where they are long; the kernel's name of the process in brackets if it has
   * none. The process chooses these characters, and they may be control characters.
   */
  readonly command: string | null;
  readonly usedMemoryBytes: number | null;
  /** Percent of the GPU. */
  readonly usedPercent: number | null;
}

/** The processes of one allocation, as plain values for JSON. */
export interface ProcessDocument {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly allocation: string;
  readonly processes: readonly ProcessSnapshot[];
  /** Number of further processes. */
  readonly omitted: number;
}
