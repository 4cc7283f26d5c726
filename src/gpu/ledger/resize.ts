import { isFraction, type ContainerRequest } from '../request.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import { withAllocation } from './allocate.js';
import { amountsOf, coreIdsOf, memoryIdsOf, type Allocation } from './allocation.js';
import { slots, type LedgerState } from './state.js';

export type Resized =
  | { readonly ok: true; readonly state: LedgerState; readonly allocation: Allocation }
  | { readonly ok: false; readonly reason: 'Deferred' | 'Infeasible'; readonly message: string };

/**
 * Gives a running container other amounts of its GPU, both or none of them. Never less than its ids: the kubelet counts
 * these until the pod is gone.
 */
export function resize(state: LedgerState, allocation: Allocation, asked: ContainerRequest): Resized {
  const { grown, ...base } = allocation;
  const [own, isGrown] = [amountsOf(base), grown !== undefined];
  const more = {
    cores: Math.max(0, asked.cores - own.cores),
    memoryBlocks: Math.max(0, asked.memoryBlocks - own.memoryBlocks),
  };
  if (more.cores + more.memoryBlocks === 0)
    return isGrown
      ? { ok: true, state: withAllocation(state, base), allocation: base }
      : { ok: true, state, allocation };
  const wrong = infeasible(state, base, asked);
  if (wrong !== null) return { ok: false, reason: 'Infeasible', message: wrong };
  const without = withAllocation(state, base);
  const slot = slots(without).find(({ gpu }) => gpu.uuid === base.parts[0]?.gpuUuid);
  const isMore = more.cores > (grown?.cores ?? 0) || more.memoryBlocks > (grown?.memoryBlocks ?? 0);
  const [cores, blocks] = [slot?.freeCores ?? 0, memoryBlocks(slot?.freeMemoryBytes ?? 0)];
  if (isMore && slot?.usable !== true) return deferred(`GPU ${slot?.gpu.index ?? '?'} is unhealthy or not there`);
  if (isMore && (more.cores > cores || more.memoryBlocks > blocks))
    return deferred(
      `beside other containers, GPU ${slot?.gpu.index ?? '?'} has ${inWords({
        cores: own.cores + cores,
        memoryBlocks: own.memoryBlocks + blocks,
      })} for this one`,
    );
  const next = { ...base, grown: more };
  return { ok: true, state: withAllocation(without, next), allocation: next };
}

/** "60 cores and 6144 MiB". */
function inWords({ cores, memoryBlocks: blocks }: ContainerRequest): string {
  return `${cores} cores and ${(blocks * MEMORY_BLOCK_BYTES) / 2 ** 20} MiB`;
}

function deferred(message: string): Resized {
  return { ok: false, reason: 'Deferred', message };
}

/** Why a container can never have these amounts where it runs; null if it can. */
function infeasible({ node }: LedgerState, allocation: Allocation, asked: ContainerRequest): string | null {
  const { parts } = allocation;
  const [part] = parts;
  if (part === undefined || parts.length > 1)
    return `the container has ${parts.length} GPUs; only containers with one GPU can be resized`;
  if (!isFraction(coreIdsOf(allocation).length) && memoryIdsOf(allocation).length === 0)
    return 'the container has a whole GPU without a memory limit; there is no more of it';
  const gpu = node.gpus.find((entry) => entry.gpu.uuid === part.gpuUuid)?.gpu;
  if (gpu === undefined) return null;
  const all = { cores: CORES_PER_GPU, memoryBlocks: memoryBlocks(gpu.memoryBytes) };
  return asked.cores > all.cores || asked.memoryBlocks > all.memoryBlocks
    ? `GPU ${gpu.index} has ${inWords(all)}`
    : null;
}
