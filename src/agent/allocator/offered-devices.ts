import { isOffered } from '../../gpu/ledger/gpu-mode.js';
import { factorOf } from '../../gpu/offer.js';
import { isGivenWhole, usage, type LedgerState } from '../../gpu/ledger/state.js';
import type { ResourceKind } from '../../gpu/resources.js';

/** A device as the kubelet lists it. */
export interface OfferedDevice {
  readonly id: string;
  readonly healthy: boolean;
  readonly numaNode: number | null;
}

/**
 * Every device id that a node offers: the kubelet accepts only whole lists. A GPU that resource claims use, or will
 * use, offers only the ids that containers still hold: the kubelet must not lose devices that are in use.
 */
export function offeredDevices(state: LedgerState, kind: ResourceKind): OfferedDevice[] {
  return state.node.gpus.flatMap(({ gpu, usable }) => {
    if (isGivenWhole(state.node, gpu)) return [];
    const { ids: names, suspendFactor } = state.node;
    const all = new Set(names.all(gpu, kind, factorOf(gpu, suspendFactor)));
    const held = heldIds(state, kind, gpu.uuid);
    // The agent may have offered more before it was restarted.
    const ids = isOffered(state, gpu.uuid, 'plugin') ? [...all, ...held.filter((id) => !all.has(id))] : held;
    return ids.map((id) => ({ id, healthy: usable, numaNode: gpu.numaNode }));
  });
}

/** The ids that name a GPU and that containers hold, whichever GPU they got for them; in order of number. */
function heldIds(state: LedgerState, kind: ResourceKind, gpuUuid: string): string[] {
  const held = [...usage(state).values()].flatMap(({ coreIds, memoryIds }) => [
    ...(kind === 'core' ? coreIds : memoryIds),
  ]);
  const named = held.flatMap((id) => {
    const decoded = state.node.ids.decode(id);
    return decoded?.gpuUuid === gpuUuid ? [{ id, number: decoded.number }] : [];
  });
  return named.sort((a, b) => a.number - b.number).map(({ id }) => id);
}

/** The MIG instances of each profile, where they are given whole. */
export function offeredInstances(state: LedgerState): ReadonlyMap<string, readonly OfferedDevice[]> {
  const byProfile = new Map<string, OfferedDevice[]>();
  for (const { gpu, usable } of state.node.gpus) {
    // Claims alone get instances that the agent creates.
    if (gpu.instance === undefined || gpu.instance.placement !== undefined || !isGivenWhole(state.node, gpu)) continue;
    const known = byProfile.get(gpu.instance.profile) ?? [];
    byProfile.set(gpu.instance.profile, known);
    if (isOffered(state, gpu.uuid, 'plugin'))
      known.push({ id: state.node.ids.encodeWhole(gpu.uuid), healthy: usable, numaNode: gpu.numaNode });
  }
  return byProfile;
}
