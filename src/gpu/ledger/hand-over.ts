import { doorOf, wantedDoor } from './door.js';
import type { LedgerState } from './state.js';

/** What must be known before a GPU changes its way. */
export interface HandOverEvidence {
  /**
   * GPUs that no allocated claim of the cluster names and that have not been offered to claims for as long as the
   * scheduler may take to act on what it saw; null while the API server cannot be asked.
   */
  readonly freeOfClaims: ReadonlySet<string> | null;
}

/**
 * Hands GPUs over that are to go another way and that nobody holds by the present one, and settles those of which it is
 * not known: they go the way of whoever holds them, and no way while both do.
 */
export function handOver(state: LedgerState, evidence: HandOverEvidence): LedgerState {
  const doors = new Map(state.doors);
  for (const { gpu } of state.node.gpus) {
    const wanted = wantedDoor(state.claimGpus, gpu.uuid);
    const now = doorOf(state, gpu.uuid);
    const [byPlugin, byClaims] = [heldByPlugin(state, gpu.uuid), heldByClaims(state, gpu.uuid)];
    if (now === null) {
      if (byPlugin && byClaims) continue;
      const free = wanted === 'claims' || evidence.freeOfClaims?.has(gpu.uuid) === true;
      if (byPlugin) doors.set(gpu.uuid, 'plugin');
      else if (byClaims || !free) doors.set(gpu.uuid, 'claims');
      else doors.set(gpu.uuid, wanted);
    } else if (now !== wanted) {
      const drained = now === 'plugin' ? !byPlugin : !byClaims && evidence.freeOfClaims?.has(gpu.uuid) === true;
      if (drained) doors.set(gpu.uuid, wanted);
    }
  }
  const changed = doors.size !== state.doors.size || [...doors].some(([uuid, door]) => state.doors.get(uuid) !== door);
  return changed ? { ...state, doors } : state;
}

/** GPUs that containers hold by both ways at once, as wrong news may have it: neither way gives them to anybody. */
export function heldByBoth(state: LedgerState): string[] {
  return state.node.gpus.flatMap(({ gpu }) =>
    heldByPlugin(state, gpu.uuid) && heldByClaims(state, gpu.uuid) ? [gpu.uuid] : [],
  );
}

function heldByPlugin(state: LedgerState, gpuUuid: string): boolean {
  const hasPart = ({ parts }: { readonly parts: readonly { readonly gpuUuid: string }[] }): boolean =>
    parts.some((part) => part.gpuUuid === gpuUuid);
  return (
    [...state.allocations.values()].some(hasPart) ||
    state.legacy.some(hasPart) ||
    state.halves.some(({ memoryIds }) => memoryIds.some((id) => state.node.ids.decode(id)?.gpuUuid === gpuUuid))
  );
}

function heldByClaims(state: LedgerState, gpuUuid: string): boolean {
  return [...state.units.values()].some(({ devices }) => devices.some((device) => device.gpuUuid === gpuUuid));
}
