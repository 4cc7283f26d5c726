/**
 * How pods get a GPU: by device ids of the device plugin, or by resource claims. A GPU never has both modes at once,
 * since the kubelet and the scheduler would each count its capacity alone.
 */
export type GpuMode = 'plugin' | 'claims';

/** GPUs that the configuration gives to claims. */
export type ClaimGpus = 'none' | 'every' | ReadonlySet<string>;

export function configuredMode(gpus: ClaimGpus, gpuUuid: string): GpuMode {
  if (gpus === 'none') return 'plugin';
  return gpus === 'every' || gpus.has(gpuUuid) ? 'claims' : 'plugin';
}

/** The part of the ledger that holds the modes of GPUs. */
export interface GpuModes {
  /** The mode of each GPU, by UUID. */
  readonly modes: ReadonlyMap<string, GpuMode>;
  readonly claimGpus: ClaimGpus;
}

/** The present mode of a GPU; null while it is unknown, for example after the checkpoint was lost. */
export function modeOf({ modes, claimGpus }: GpuModes, gpuUuid: string): GpuMode | null {
  return modes.get(gpuUuid) ?? (claimGpus === 'none' ? 'plugin' : null);
}

/** True when new containers may get the GPU in this mode: it is the present mode and the configured one. */
export function isOffered(state: GpuModes, gpuUuid: string, mode: GpuMode): boolean {
  return modeOf(state, gpuUuid) === mode && configuredMode(state.claimGpus, gpuUuid) === mode;
}
