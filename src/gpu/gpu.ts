/** One physical GPU of the node, with the fields that identify and place it. */
export interface Gpu {
  /** Enumeration order of the driver (NVML index), which `tencent.com/predicate-gpu-idx-<i>` contains. */
  readonly index: number;
  /** N of `/dev/nvidiaN`. */
  readonly minor: number;
  /** `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; stable over restarts and re-enumeration. */
  readonly uuid: string;
  /** `00000000:3B:00.0`, upper case, eight digit domain, as NVML prints it. */
  readonly pciBusId: string;
  /** Product name, for example `NVIDIA H200`. */
  readonly model: string;
  /** Total memory in bytes. */
  readonly memoryBytes: number;
  /** NUMA node near the GPU; null if the platform does not report it. */
  readonly numaNode: number | null;
}
