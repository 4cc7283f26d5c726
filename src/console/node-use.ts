import { list, record, text, type JsonRecord } from '../kube/json.js';

/** The use of a node's GPUs, as its agent told it. */
export interface NodeUse {
  /** Percent, by index of the GPU. */
  readonly gpus: ReadonlyMap<number, number>;
  /** By UID of the pod. */
  readonly pods: ReadonlyMap<string, PodUse>;
}

export interface PodUse {
  /** Percent of one GPU, in sum over its GPUs. */
  readonly percent: number;
  /** When it used them last, milliseconds since 1970, to the minute; null if it never did. */
  readonly lastUsedMs: number | null;
}

const MINUTE_MS = 60_000;

/** The use that an agent's document of its node shows. */
export function useOf(document: JsonRecord): NodeUse {
  const gpus = new Map<number, number>();
  for (const gpu of list(document.gpus).map(record))
    if (typeof gpu.index === 'number' && typeof gpu.usedPercent === 'number')
      gpus.set(gpu.index, Math.round(gpu.usedPercent));
  const pods = new Map<string, PodUse>();
  for (const allocation of list(document.allocations).map(record)) {
    const uid = text(record(list(allocation.owners).at(-1)).podUid);
    if (uid === '' || allocation.phase !== 'started') continue;
    for (const slice of list(allocation.slices).map(record)) {
      const before = pods.get(uid) ?? { percent: 0, lastUsedMs: null };
      const percent = typeof slice.usedPercent === 'number' ? slice.usedPercent : 0;
      const usedMs = typeof slice.lastUsedMs === 'number' ? Math.floor(slice.lastUsedMs / MINUTE_MS) * MINUTE_MS : null;
      const lastUsedMs = Math.max(before.lastUsedMs ?? 0, usedMs ?? 0);
      pods.set(uid, {
        percent: Math.round(before.percent + percent),
        lastUsedMs: lastUsedMs === 0 ? null : lastUsedMs,
      });
    }
  }
  return { gpus, pods };
}
