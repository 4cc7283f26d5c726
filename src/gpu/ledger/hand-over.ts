import { modeOf, configuredMode } from './gpu-mode.js';
import { usage, type LedgerState } from './state.js';

/** The facts that must be known before a GPU changes its mode. */
export interface HandOverEvidence {
  /**
   * GPUs that no allocated claim of the cluster names, and whose devices left the ResourceSlices long enough ago that
   * the scheduler acts on none of them any more; null while the API server does not answer.
   */
  readonly freeOfClaims: ReadonlySet<string> | null;
}

/**
 * Changes the mode of GPUs whose configured mode differs as soon as no container holds them in the present mode. A GPU
 * of unknown mode gets the mode of its holders, and stays unknown while it has holders in both modes.
 */
export function handOver(state: LedgerState, evidence: HandOverEvidence): LedgerState {
  const modes = new Map(state.modes);
  for (const { gpu } of state.node.gpus) {
    const wanted = configuredMode(state.claimGpus, gpu.uuid);
    const now = modeOf(state, gpu.uuid);
    const [byPlugin, byClaims] = [heldByPlugin(state, gpu.uuid), heldByClaims(state, gpu.uuid)];
    if (now === null) {
      if (byPlugin && byClaims) continue;
      const free = wanted === 'claims' || evidence.freeOfClaims?.has(gpu.uuid) === true;
      if (byPlugin) modes.set(gpu.uuid, 'plugin');
      else if (byClaims || !free) modes.set(gpu.uuid, 'claims');
      else modes.set(gpu.uuid, wanted);
    } else if (now !== wanted) {
      const drained = now === 'plugin' ? !byPlugin : !byClaims && evidence.freeOfClaims?.has(gpu.uuid) === true;
      if (drained) modes.set(gpu.uuid, wanted);
    }
  }
  const changed = modes.size !== state.modes.size || [...modes].some(([uuid, mode]) => state.modes.get(uuid) !== mode);
  return changed ? { ...state, modes } : state;
}

/**
 * After the loss of the checkpoint on a node that gives no GPU to claims any more, and whose containers still hold
 * claims: no GPU belongs to the device plugin until it is known that no claim has it.
 */
export function keptFromPlugin(state: LedgerState): LedgerState {
  if (state.claimGpus !== 'none' || state.modes.size > 0) return state;
  return { ...state, modes: new Map(state.node.gpus.map(({ gpu }) => [gpu.uuid, 'claims' as const])) };
}

/** GPUs that containers hold in both modes at once, which wrong data can cause: neither mode offers them. */
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
    (usage(state).get(gpuUuid)?.memoryIds.size ?? 0) > 0
  );
}

function heldByClaims(state: LedgerState, gpuUuid: string): boolean {
  return [...state.units.values()].some(({ devices }) => devices.some((device) => device.gpuUuid === gpuUuid));
}
