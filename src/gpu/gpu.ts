/** One GPU of the node, physical or an instance of MIG, with the fields that identify and place it. */
export interface Gpu {
  /**
   * Enumeration order of the driver (NVML index), which `tencent.com/predicate-gpu-idx-<i>` contains. Instances of MIG
   * come after all GPUs.
   */
  readonly index: number;
  /** N of `/dev/nvidiaN`; an instance has the minor number, address and NUMA node of its GPU. */
  readonly minor: number;
  /** `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, or `MIG-...` of an instance; stable over restarts. */
  readonly uuid: string;
  /** `00000000:3B:00.0`, upper case, eight digit domain, as NVML prints it. */
  readonly pciBusId: string;
  /** Product name, for example `NVIDIA H200`. */
  readonly model: string;
  /** Total memory in bytes. */
  readonly memoryBytes: number;
  /** NUMA node near the GPU; null if the platform does not report it. */
  readonly numaNode: number | null;
  /** Set where containers share its multiprocessors, by MPS; absent: they share its time. */
  readonly compute?: 'sm';
  /** Only of an instance of MIG. */
  readonly instance?: MigInstance;
}

/** A MIG instance, which the agent treats as a separate GPU. */
export interface MigInstance {
  /** NVIDIA's name of its size: `1g.10gb`, `1g.10gb+me`, `1c.3g.40gb`. */
  readonly profile: string;
  /** UUID of the GPU that it is a part of. */
  readonly parentUuid: string;
  /** Ids of the GPU instance on that GPU, and of the compute instance in it. */
  readonly gpuInstance: number;
  readonly computeInstance: number;
  /** Where it is on the GPU; only on a GPU that the agent divides as claims need it. */
  readonly placement?: { readonly profileId: number; readonly start: number };
  /** SMs; null where the driver does not say. */
  readonly multiprocessors: number | null;
}
