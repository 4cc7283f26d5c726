/** One physical GPU of the node, as far as placement and identity need to know it. */
export interface Gpu {
  /** Enumeration order of the driver (NVML index); what `tencent.com/predicate-gpu-idx-<i>` counts. */
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
  /** NUMA node the GPU hangs on; null where the platform does not say. */
  readonly numaNode: number | null;
}
