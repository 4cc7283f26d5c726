/** One reading of a GPU, as its driver reports it. Null: the GPU does not report this figure. */
export interface GpuSample {
  /** When the sample was taken, in milliseconds since 1970 by the caller's clock. */
  readonly atMs: number;
  /** Percent of the time in which a kernel ran, 0 to 100. */
  readonly utilizationPercent: number | null;
  readonly usedMemoryBytes: number | null;
  readonly temperatureCelsius: number | null;
  readonly powerMilliwatts: number | null;
}

/** A process that has a context on a GPU, as the driver lists it. Null: the GPU does not report this figure. */
export interface GpuProcess {
  /** In the pid namespace of the host. */
  readonly pid: number;
  readonly usedMemoryBytes: number | null;
  /** Percent of the GPU's multiprocessors in the last seconds, 0 to 100. */
  readonly utilizationPercent: number | null;
}
