import { adoptedAllocations } from './adopted-allocations.js';
import type { Allocator } from '../allocator/index.js';
import { holdings, type HeldPart } from '../../gpu/ledger/holding.js';
import { type LedgerState, slots } from '../../gpu/ledger/state.js';
import type { ContainerRef } from '../../gpu/ledger/allocation.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { GpuSlot } from '../../gpu/placement/slot.js';
import { printGraph, type GpuUsage } from '../../gpu/topology/graph.js';
import { linksBetween, type Topology } from '../../gpu/topology/topology.js';
import { buildTree, type TreeNode } from '../../gpu/topology/tree.js';
import type {
  UsageCounters,
  DeviceObservation,
  GpuObservation,
  MemoryEnforcer,
  SliceObservation,
  UseObservation,
} from '../slices/index.js';
import type {
  AllocationSnapshot,
  GpuSnapshot,
  HealthSnapshot,
  NodeCounts,
  NodeSnapshot,
  NodeView,
  PodFacts,
  SliceCounters,
  SliceSnapshot,
} from './view.js';
import type { Clock } from '../../host/clock.js';

export interface NodeViewOptions {
  readonly nodeName: string;
  readonly version: string;
  readonly allocator: Allocator;
  readonly driverVersion: () => string | null;
  readonly driverOutage: () => string | null;
  /** Health of a GPU of the ledger's node; null if it is not monitored. */
  readonly health: (gpuUuid: string) => HealthSnapshot | null;
  /** What enforces memory limits on a GPU. */
  readonly memoryEnforcer: (gpuUuid: string) => MemoryEnforcer;
  readonly observeSlices: () => readonly SliceObservation[];
  readonly observeUse: () => readonly UseObservation[];
  readonly observeGpus: () => readonly GpuObservation[];
  readonly pod: (podUid: string) => PodFacts | null;
  /** When a container used a GPU last, milliseconds since 1970; null if that is unknown. */
  readonly lastUsedMs: (owner: ContainerRef, gpuUuid: string) => number | null;
  readonly counts: () => NodeCounts;
  readonly notReady: () => readonly string[];
  readonly clock: Clock;
}

/** The display's view of the running agent: allocations from the ledger, use from the vGPU manager. */
export function nodeView(options: NodeViewOptions): NodeView {
  const { allocator } = options;
  const picture = new TopologyPicture();
  const sinceMs = options.clock.now();
  return {
    nodeName: options.nodeName,
    version: options.version,
    graph: ({ extended = false } = {}) => {
      const { state } = allocator;
      return printGraph(state.node.topology, graphSlots(state), {
        usage: gpuUsages(state, options.observeGpus(), options.observeSlices()),
        extended,
      });
    },
    snapshot(): NodeSnapshot {
      const { state } = allocator;
      const slices = new Map(options.observeSlices().map((slice) => [slice.allocation, slice]));
      return {
        atMs: options.clock.now(),
        node: options.nodeName,
        version: options.version,
        driverVersion: options.driverVersion(),
        driverOutage: options.driverOutage(),
        notReady: options.notReady(),
        gpus: gpus(state, options),
        ...picture.of(state.node.topology),
        allocations: [
          ...allocations(state, slices, options),
          ...adoptedAllocations(state, { gpus: options.observeGpus(), pod: options.pod, sinceMs }),
        ],
      };
    },
    use: () => ({
      atMs: options.clock.now(),
      gpus: options.observeGpus().map(({ gpuUuid, sample }) => ({
        uuid: gpuUuid,
        usedPercent: sample?.utilizationPercent ?? null,
        usedMemoryBytes: sample?.usedMemoryBytes ?? null,
      })),
      allocations: options.observeUse().map(({ allocation, owner, devices }) => ({
        id: allocation,
        owner,
        slices: devices.map(({ throttledNs, launches, share, softLimit, ...device }) => ({
          ...device,
          borrows: softLimit !== null && softLimit > share,
          counters: { throttledSeconds: throttledNs / 1e9, launches },
        })),
      })),
    }),
    pod: options.pod,
    counts: options.counts,
    notReady: options.notReady,
  };
}

/** The parts of a snapshot that change only with the machine. */
class TopologyPicture {
  #topology: Topology | null = null;
  #picture: Pick<NodeSnapshot, 'tree' | 'nvlinks'> = { tree: [], nvlinks: [] };

  of(topology: Topology): Pick<NodeSnapshot, 'tree' | 'nvlinks'> {
    if (topology !== this.#topology) {
      this.#topology = topology;
      this.#picture = { tree: buildTree(topology).map(plain), nvlinks: linkedPairs(topology) };
    }
    return this.#picture;
  }
}

function plain({ level, positions, children }: TreeNode): TreeNode {
  return { level, positions, children: children.map(plain) };
}

function linkedPairs(topology: Topology): (readonly [number, number, number])[] {
  const positions = [...topology.levels.keys()];
  return positions.flatMap((a) =>
    positions.flatMap((b) => {
      const links = b > a ? linksBetween(topology, a, b) : 0;
      return links > 0 ? [[a, b, links] as const] : [];
    }),
  );
}

const HEALTHY: HealthSnapshot = { status: 'healthy', reason: null, sinceMs: 0 };

function gpus(state: LedgerState, options: NodeViewOptions): GpuSnapshot[] {
  const seen = new Map(options.observeGpus().map((gpu) => [gpu.gpuUuid, gpu]));
  return slots(state).map(({ gpu, usable, freeCores, freeMemoryBytes }) => {
    const observed = seen.get(gpu.uuid);
    const sample = observed?.sample ?? null;
    return {
      index: gpu.index,
      uuid: gpu.uuid,
      model: gpu.model,
      instance: gpu.instance,
      pciBusId: gpu.pciBusId,
      numaNode: gpu.numaNode,
      memoryBytes: gpu.memoryBytes,
      usable,
      ...enforcerOf(options.memoryEnforcer(gpu.uuid)),
      ...(gpu.compute === undefined ? {} : { compute: gpu.compute }),
      health: options.health(gpu.uuid) ?? HEALTHY,
      allocatedCores: CORES_PER_GPU - freeCores,
      // Memory beyond the last whole block of a GPU is never allocated.
      allocatedMemoryBytes: Math.floor(gpu.memoryBytes / MEMORY_BLOCK_BYTES) * MEMORY_BLOCK_BYTES - freeMemoryBytes,
      usedPercent: sample?.utilizationPercent ?? null,
      usedMemoryBytes: sample?.usedMemoryBytes ?? null,
      temperatureCelsius: sample?.temperatureCelsius ?? null,
      powerWatts: sample === null || sample.powerMilliwatts === null ? null : sample.powerMilliwatts / 1000,
      foreignPids: observed?.foreignPids ?? [],
      samples: observed?.samples ?? 0,
      failedSamples: observed?.failedSamples ?? 0,
    };
  });
}

function enforcerOf(enforcer: MemoryEnforcer): Pick<GpuSnapshot, 'memoryEnforcer'> {
  if (enforcer.by === 'driver') return { memoryEnforcer: enforcer };
  const { by, reason } = enforcer;
  return reason === null ? {} : { memoryEnforcer: { by, reason } };
}

/** As the original shows them: a GPU that one container has as a whole has no free memory, whatever was requested. */
function graphSlots(state: LedgerState): GpuSlot[] {
  const parts = [...holdings(state), ...state.legacy].flatMap(
    (holding): readonly { gpuUuid: string; cores: number }[] => holding.parts,
  );
  const whole = new Set(parts.filter(({ cores }) => cores >= CORES_PER_GPU).map(({ gpuUuid }) => gpuUuid));
  return slots(state).map((slot) => (whole.has(slot.gpu.uuid) ? { ...slot, freeMemoryBytes: 0 } : slot));
}

/** Use of each GPU, in the order of the topology's positions. */
function gpuUsages(
  state: LedgerState,
  gpus: readonly GpuObservation[],
  slices: readonly SliceObservation[],
): GpuUsage[] {
  const seen = new Map(gpus.map((gpu) => [gpu.gpuUuid, gpu]));
  const pids = new Map<string, Set<number>>();
  for (const { devices } of slices) {
    for (const device of devices) {
      const known = pids.get(device.gpuUuid) ?? new Set();
      for (const pid of device.pids) known.add(pid);
      pids.set(device.gpuUuid, known);
    }
  }
  return state.node.gpus.map(({ gpu }) => {
    const observed = seen.get(gpu.uuid);
    const adopted = (observed?.adopted ?? []).map(({ process }) => process.pid);
    const all = [...(pids.get(gpu.uuid) ?? []), ...adopted, ...(observed?.foreignPids ?? [])];
    return { pids: all.sort((a, b) => a - b), usedMemoryBytes: observed?.processMemoryBytes ?? 0 };
  });
}

function allocations(
  state: LedgerState,
  observed: ReadonlyMap<string, SliceObservation>,
  { pod: podFacts, lastUsedMs }: Pick<NodeViewOptions, 'pod' | 'lastUsedMs'>,
): AllocationSnapshot[] {
  const gpus = new Map(state.node.gpus.map(({ gpu }) => [gpu.uuid, gpu]));
  return holdings(state).map((holding): AllocationSnapshot => {
    const slice = observed.get(holding.id);
    const owner = slice?.owner ?? holding.owners.at(-1);
    const quotaGroup = podFacts(holding.owners.at(-1)?.podUid ?? '')?.quotaGroup ?? null;
    const blocks = holding.parts.reduce((sum, part) => sum + part.memoryBlocks, 0);
    return {
      id: holding.id,
      phase: holding.phase,
      unenforced: slice?.unenforced ?? false,
      owners: holding.owners,
      ...(holding.claims.length === 0 ? {} : { claims: holding.claims }),
      allocatedAtMs: holding.heldSince,
      cores: holding.parts.reduce((sum, part) => sum + part.cores, 0),
      memoryBytes: blocks === 0 ? null : blocks * MEMORY_BLOCK_BYTES,
      processes: slice?.processes ?? 0,
      findings: (slice?.findings ?? []).map(({ code, message, serious }) => ({ code, message, serious })),
      refusedConnections: slice?.refusals.connections ?? 0,
      socketFloods: slice?.refusals.floods ?? 0,
      ...(quotaGroup === null ? {} : { quotaGroup }),
      ...suspensionOf(slice),
      slices: holding.parts.flatMap((part) => {
        const gpu = gpus.get(part.gpuUuid);
        // A GPU that was removed from the machine is not shown.
        if (gpu === undefined) return [];
        const device = slice?.devices.find(({ gpuUuid }) => gpuUuid === gpu.uuid) ?? null;
        const lastUse = owner === undefined ? null : lastUsedMs(owner, gpu.uuid);
        return [sliceOf(part, gpu, part.memoryLimitBytes, device, lastUse)];
      }),
    };
  });
}

function suspensionOf(slice: SliceObservation | undefined): Pick<AllocationSnapshot, 'suspension'> {
  const suspension = slice?.suspension ?? null;
  return suspension === null ? {} : { suspension };
}

type LedgerGpu = LedgerState['node']['gpus'][number]['gpu'];

function sliceOf(
  part: HeldPart,
  gpu: LedgerGpu,
  allocatedMemoryBytes: number | null,
  device: DeviceObservation | null,
  lastUsedMs: number | null,
): SliceSnapshot {
  const allocatedCores = Math.min(CORES_PER_GPU, part.cores);
  return {
    gpuUuid: gpu.uuid,
    gpuIndex: gpu.index,
    pciBusId: gpu.pciBusId,
    gpuMemoryBytes: gpu.memoryBytes,
    allocatedCores,
    allocatedMemoryBytes,
    share: device?.share ?? allocatedCores,
    softLimit: device?.softLimit ?? null,
    ...(device === null || device.priority === 'normal' ? {} : { priority: device.priority }),
    memoryLimitBytes: device === null ? allocatedMemoryBytes : device.memoryLimitBytes,
    ...(device?.memoryByDriver === true ? { memoryByDriver: true as const } : {}),
    usedPercent: device?.usedPercent ?? 0,
    usedMemoryBytes: device?.usedMemoryBytes ?? 0,
    driverMemoryBytes: device?.driverOverheadBytes ?? 0,
    hostBackedLimitBytes: device?.hostBackedLimitBytes ?? 0,
    hostBackedBytes: device?.hostBackedBytes ?? 0,
    peakMemoryBytes: device?.peakMemoryBytes ?? null,
    pids: device?.pids ?? [],
    lastUsedMs,
    counters: device === null ? null : countersOf(device.counters),
    controlError: device === null || device.controlErrorPpm === null ? null : device.controlErrorPpm / 1e6,
    correction: (device?.correctionPpm ?? 1e6) / 1e6,
    timeDrift: device === null || device.drift.timePpm === null ? null : device.drift.timePpm / 1e6,
    memoryDriftBytes: device?.drift.memoryBytes ?? null,
  };
}

function countersOf({ launches, waits, throttledNs, chargedNs, deniedBytes, denied }: UsageCounters): SliceCounters {
  return { launches, waits, throttledSeconds: throttledNs / 1e9, chargedSeconds: chargedNs / 1e9, deniedBytes, denied };
}
