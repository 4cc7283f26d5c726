import type { Gpu } from '../gpu.js';
import type { LedgerState } from './state.js';

/** The number of these ids that each GPU has, by UUID; unknown ids are ignored. */
export function countByGpu(state: LedgerState, ids: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) {
    const uuid = state.node.ids.decode(id)?.gpuUuid;
    if (uuid !== undefined) counts.set(uuid, (counts.get(uuid) ?? 0) + 1);
  }
  return counts;
}

/** The GPUs (indexes) of which as many core ids are offered as a container needs of each. */
export function gpusOffering(state: LedgerState, available: readonly string[], coresEach: number): readonly number[] {
  const offered = countByGpu(state, available);
  return state.node.gpus.flatMap(({ gpu }) => ((offered.get(gpu.uuid) ?? 0) >= coresEach ? gpu.index : []));
}

/**
 * `size` of the available ids: the mandatory ids first, then ids of the chosen GPUs in equal shares, lowest numbers
 * first. If these do not suffice, ids of other GPUs follow, first of the GPU with the most ids left. Null if there are
 * too few ids.
 */
export function pickIds(
  state: LedgerState,
  request: { readonly available: readonly string[]; readonly mustInclude: readonly string[]; readonly size: number },
  gpus: readonly Gpu[],
): string[] | null {
  const must = new Set(request.mustInclude);
  const byGpu = new Map<string, { id: string; number: number }[]>();
  for (const id of request.available) {
    const decoded = state.node.ids.decode(id);
    if (decoded === null || must.has(id)) continue;
    const list = byGpu.get(decoded.gpuUuid) ?? [];
    list.push({ id, number: decoded.number });
    byGpu.set(decoded.gpuUuid, list);
  }
  for (const list of byGpu.values()) list.sort((a, b) => a.number - b.number);
  const picked = [...must];
  const take = (uuid: string, count: number): void => {
    const list = byGpu.get(uuid) ?? [];
    picked.push(...list.splice(0, Math.max(0, Math.min(count, request.size - picked.length))).map((entry) => entry.id));
  };
  const heldOf = countByGpu(state, request.mustInclude);
  const share = Math.ceil(request.size / Math.max(1, gpus.length));
  for (const gpu of gpus) take(gpu.uuid, share - (heldOf.get(gpu.uuid) ?? 0));
  for (const gpu of gpus) take(gpu.uuid, request.size);
  const others = [...byGpu.entries()].sort((a, b) => b[1].length - a[1].length);
  for (const [uuid] of others) take(uuid, request.size);
  return picked.length === request.size ? picked : null;
}
