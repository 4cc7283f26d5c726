import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../resources.js';
import type { ContainerRef } from './allocation.js';
import type { Holder } from './identify.js';
import type { LegacyHolding, OriginalAllocation } from './legacy-holding.js';
import { gpusNamed, type LedgerNode, type LedgerState } from './state.js';

/** True for `tencent.com/vcuda-core-17` and `tencent.com/vcuda-memory-268435456-3`, the ids of tkestack gpu-manager. */
export function isLegacyId(id: string): boolean {
  return id.startsWith(`${CORE_RESOURCE}-`) || id.startsWith(`${MEMORY_RESOURCE}-`);
}

/** The holdings according to the original's checkpoint, used until the kubelet answers. */
export function legacyFromOriginal(node: LedgerNode, allocations: readonly OriginalAllocation[]): LegacyHolding[] {
  return allocations.map(({ podUid, container, devicePaths, cores, memoryBytes }) =>
    holding(
      node,
      { podUid, namespace: '', pod: '', container },
      cores,
      Math.ceil(memoryBytes / MEMORY_BLOCK_BYTES),
      devicePaths,
    ),
  );
}

/** Reserves this container's share if the kubelet names it with ids of the original's format. */
export function noteLegacy(state: LedgerState, holder: Holder): LedgerState {
  const { container, coreIds, memoryIds, gpuNames } = holder;
  if (coreIds.length === 0 || !coreIds.every(isLegacyId)) return state;
  const known = state.legacy.find((entry) => isSame(entry.container, container));
  const fresh = holding(state.node, container, coreIds.length, memoryIds.length, gpuNames);
  // The answer that the kubelet recorded is exact; the original's own checkpoint may name another container.
  const next =
    fresh.gpusKnown || known === undefined || !known.gpusKnown ? fresh : { ...known, container, missingSince: null };
  if (known !== undefined && JSON.stringify(known) === JSON.stringify(next)) return state;
  return { ...state, legacy: [...state.legacy.filter((entry) => entry !== known), next] };
}

export interface FollowedLegacy {
  readonly state: LedgerState;
  readonly begun: readonly LegacyHolding[];
  readonly ended: readonly LegacyHolding[];
}

/**
 * Updates the holdings from all holders that the kubelet names. A holding ends with its pod, or when the kubelet has
 * not named it for the grace period.
 */
export function followLegacy(
  before: LedgerState,
  holders: readonly Holder[],
  {
    endedPods,
    now,
    graceMs,
  }: { readonly endedPods: ReadonlySet<string>; readonly now: number; readonly graceMs: number },
): FollowedLegacy {
  const living = holders.filter(
    ({ container, coreIds }) => coreIds.some(isLegacyId) && !endedPods.has(container.podUid),
  );
  if (living.length === 0 && before.legacy.length === 0) return { state: before, begun: [], ended: [] };
  const noted = living.reduce(noteLegacy, before);
  const kept = noted.legacy.flatMap((entry): LegacyHolding[] => {
    if (endedPods.has(entry.container.podUid)) return [];
    if (living.some(({ container }) => isSame(entry.container, container))) return [entry];
    const missingSince = Math.min(entry.missingSince ?? now, now);
    return now - missingSince < graceMs ? [{ ...entry, missingSince }] : [];
  });
  const among = (list: readonly LegacyHolding[], { container }: LegacyHolding): boolean =>
    list.some((entry) => isSame(entry.container, container));
  const begun = kept.filter((entry) => !among(before.legacy, entry));
  const ended = before.legacy.filter((entry) => !among(kept, entry));
  const same =
    kept.length === before.legacy.length &&
    kept.every((entry, at) => JSON.stringify(entry) === JSON.stringify(before.legacy[at]));
  return { state: same ? before : { ...noted, legacy: kept }, begun, ended };
}

function holding(
  node: LedgerNode,
  container: ContainerRef,
  cores: number,
  memoryBlocks: number,
  gpuNames: readonly string[],
): LegacyHolding {
  const named = gpusNamed(node, gpuNames);
  const gpus = named ?? node.gpus.map(({ gpu }) => gpu);
  const among = named === null ? 1 : named.length;
  const parts = gpus.map((gpu) => ({
    gpuUuid: gpu.uuid,
    cores: Math.min(CORES_PER_GPU, Math.ceil(cores / among)),
    memoryBlocks: Math.ceil(memoryBlocks / among),
  }));
  return { container, cores, memoryBlocks, parts, gpusKnown: named !== null, missingSince: null };
}

function isSame(a: ContainerRef, b: ContainerRef): boolean {
  if (a.container !== b.container) return false;
  return a.podUid === '' || b.podUid === '' ? a.namespace === b.namespace && a.pod === b.pod : a.podUid === b.podUid;
}
