/**
 * By which way a GPU is given to pods: ids of the device plugin, or resource claims. One GPU never goes both ways: the
 * kubelet and the scheduler each count for themselves.
 */
export type Door = 'plugin' | 'claims';

/** GPUs that the configuration gives to claims. */
export type ClaimGpus = 'none' | 'every' | ReadonlySet<string>;

export function wantedDoor(gpus: ClaimGpus, gpuUuid: string): Door {
  if (gpus === 'none') return 'plugin';
  return gpus === 'every' || gpus.has(gpuUuid) ? 'claims' : 'plugin';
}

/** The part of the ledger that says which way GPUs go. */
export interface Doors {
  /** By which way each GPU is given, by UUID. */
  readonly doors: ReadonlyMap<string, Door>;
  readonly claimGpus: ClaimGpus;
}

/** The way of a GPU until it is handed over; null while that is not known, as after the checkpoint was lost. */
export function doorOf({ doors, claimGpus }: Doors, gpuUuid: string): Door | null {
  return doors.get(gpuUuid) ?? (claimGpus === 'none' ? 'plugin' : null);
}

/** True when new containers may get the GPU by this way: it goes this way now, and is not to go the other way. */
export function isOffered(state: Doors, gpuUuid: string, door: Door): boolean {
  return doorOf(state, gpuUuid) === door && wantedDoor(state.claimGpus, gpuUuid) === door;
}
