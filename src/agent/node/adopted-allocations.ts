import type { LegacyHolding } from '../../gpu/ledger/legacy-holding.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { GpuProcess } from '../../gpu/sample.js';
import type { GpuObservation } from '../slices/index.js';
import type { AllocationSnapshot, PodFacts, SliceSnapshot } from './view.js';

export interface AdoptedNeeds {
  readonly gpus: readonly GpuObservation[];
  readonly pod: (podUid: string) => PodFacts | null;
  /**
   * Start of this agent, in milliseconds since 1970: the agent does not know when the original made the allocations.
   */
  readonly sinceMs: number;
}

/**
 * The containers that tkestack gpu-manager started, in the form of allocations of ours. They have the original's
 * library, so their use is what the driver reports, and there are no counters.
 */
export function adoptedAllocations(state: LedgerState, needs: AdoptedNeeds): AllocationSnapshot[] {
  return state.legacy.map((holding): AllocationSnapshot => {
    const { container, cores, memoryBlocks } = holding;
    const slices = slicesOf(state, holding, needs.gpus);
    const quotaGroup = needs.pod(container.podUid)?.quotaGroup ?? null;
    return {
      id: `adopted-${container.podUid}-${container.container}`,
      phase: 'started',
      unenforced: false,
      owners: [container],
      allocatedAtMs: needs.sinceMs,
      cores,
      memoryBytes: memoryBlocks === 0 ? null : memoryBlocks * MEMORY_BLOCK_BYTES,
      processes: new Set(slices.flatMap(({ pids }) => pids)).size,
      findings: [],
      refusedConnections: 0,
      socketFloods: 0,
      ...(quotaGroup === null ? {} : { quotaGroup }),
      slices,
    };
  });
}

/** The container's GPUs; if they are unknown, the GPUs that its processes use. */
function slicesOf(state: LedgerState, holding: LegacyHolding, seen: readonly GpuObservation[]): SliceSnapshot[] {
  return holding.parts.flatMap((part): SliceSnapshot[] => {
    const gpu = state.node.gpus.find((entry) => entry.gpu.uuid === part.gpuUuid)?.gpu;
    const processes = processesOf(
      holding,
      seen.find(({ gpuUuid }) => gpuUuid === part.gpuUuid),
    );
    if (gpu === undefined || (!holding.gpusKnown && processes.length === 0)) return [];
    const sum = (amount: (process: GpuProcess) => number | null): number =>
      processes.reduce((total, process) => total + (amount(process) ?? 0), 0);
    const memoryBytes = part.memoryBlocks === 0 ? null : part.memoryBlocks * MEMORY_BLOCK_BYTES;
    const allocatedCores = Math.min(CORES_PER_GPU, part.cores);
    return [
      {
        gpuUuid: gpu.uuid,
        gpuIndex: gpu.index,
        pciBusId: gpu.pciBusId,
        gpuMemoryBytes: gpu.memoryBytes,
        allocatedCores,
        allocatedMemoryBytes: memoryBytes,
        share: allocatedCores,
        softLimit: null,
        memoryLimitBytes: memoryBytes,
        usedPercent: sum(({ utilizationPercent }) => utilizationPercent),
        usedMemoryBytes: sum(({ usedMemoryBytes }) => usedMemoryBytes),
        driverMemoryBytes: 0,
        hostBackedLimitBytes: 0,
        hostBackedBytes: 0,
        peakMemoryBytes: null,
        pids: processes.map(({ pid }) => pid).sort((a, b) => a - b),
        lastUsedMs: null,
        counters: null,
        controlError: null,
        correction: 1,
        timeDrift: null,
        memoryDriftBytes: null,
      },
    ];
  });
}

function processesOf({ container }: LegacyHolding, gpu: GpuObservation | undefined): GpuProcess[] {
  return (gpu?.adopted ?? []).flatMap(({ owner, process }) =>
    owner.podUid === container.podUid && owner.container === container.container ? [process] : [],
  );
}
