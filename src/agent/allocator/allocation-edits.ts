import { sliceEdits, type ContainerEdits } from '../../gpu/container-edits.js';
import type { Gpu } from '../../gpu/gpu.js';
import { coreIdsOf, memoryIdsOf, type Allocation } from '../../gpu/ledger/allocation.js';
import type { PendingContainer } from '../../gpu/ledger/pending.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import { isFraction } from '../../gpu/request.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { NodeFiles, PodKnowledge } from './ports.js';
import type { SliceStore } from '../slices/ports.js';

/** Devices, mounts, variables and annotations of an allocation's container. */
export function editsOf(
  allocation: Allocation,
  gpus: readonly Gpu[],
  state: LedgerState,
  {
    files,
    slices,
    pods,
  }: { readonly files: NodeFiles; readonly slices: SliceStore; readonly pods: Pick<PodKnowledge, 'pending'> },
): ContainerEdits {
  const cores = coreIdsOf(allocation).length;
  const memory = memoryIdsOf(allocation).length;
  // The request for memory may still come: containers with whole GPUs get the control library unless no candidate
  // requests memory.
  const waiting = state.open?.kind === 'core' && state.open.allocationId === allocation.id;
  const candidates = pods.pending()?.filter((container) => container.cores === cores) ?? [];
  const mayFollow =
    waiting && !(candidates.length > 0 && candidates.every((container) => container.memoryBlocks === 0));
  const isOpen = allocation.isGpuOpen === true;
  return sliceEdits({
    gpus: isOpen ? null : gpus,
    cores,
    memoryBytes: mayFollow ? null : memory * MEMORY_BLOCK_BYTES,
    gpuNodes: isOpen ? [] : gpus.map((gpu) => files.gpuNodes(gpu)),
    commonNodes: files.commonNodes(),
    libraryMounts: files.libraryMounts(isFraction(cores) || memory > 0 || mayFollow),
    sliceDirectory: slices.directoryOf(allocation.id),
    writableFiles: slices.writableFiles,
    mpsFolder: mpsFolderOf(allocation, gpus, slices),
    compat32: compat32Of(waiting ? candidates : candidates.filter(({ memoryBlocks }) => memoryBlocks === memory)),
  });
}

function mpsFolderOf({ id, compute }: Allocation, [gpu]: readonly Gpu[], slices: SliceStore): string | null {
  return compute === 'sm' && gpu !== undefined ? (slices.mpsFolderOf?.(id, gpu.uuid) ?? null) : null;
}

/** Whether a request's container needs 32-bit libraries; null if its candidates differ, false without candidates. */
function compat32Of(candidates: readonly PendingContainer[]): boolean | null {
  const known = new Set(candidates.map(({ compat32 }) => compat32 === true));
  return known.size > 1 ? null : known.has(true);
}
