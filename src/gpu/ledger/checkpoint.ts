import { createHash } from 'node:crypto';
import type { MadeInstance } from '../mig-partition.js';
import { compactIds, expandIds, type CompactIds } from '../device-id.js';
import type { Allocation, ContainerRef, Part } from './allocation.js';
import type { ClaimUnit } from './claim-unit.js';
import type { GpuMode } from './gpu-mode.js';
import type { LegacyHolding, OriginalAllocation } from './legacy-holding.js';
import type { LedgerState, MemoryHalf } from './state.js';

/**
 * File name below `--checkpoint-path`. tkestack gpu-manager uses the same name; its format is read once when upgrading.
 */
export const CHECKPOINT_FILE = 'gpumanager_internal_checkpoint';

const VERSION = 1;

/** The content of a checkpoint. The agent asks the node and the kubelet for everything else at its start. */
export interface CheckpointContent {
  readonly allocations: readonly Allocation[];
  readonly halves: readonly MemoryHalf[];
  readonly legacy: readonly LegacyHolding[];
  readonly units: readonly ClaimUnit[];
  readonly modes: ReadonlyMap<string, GpuMode>;
  readonly instances: readonly MadeInstance[];
}

export const EMPTY_CHECKPOINT: CheckpointContent = {
  allocations: [],
  halves: [],
  legacy: [],
  units: [],
  modes: new Map(),
  instances: [],
};

export type DecodedCheckpoint =
  | { readonly ok: true; readonly format: 'current'; readonly content: CheckpointContent }
  | { readonly ok: true; readonly format: 'original'; readonly allocations: readonly OriginalAllocation[] }
  | { readonly ok: false; readonly reason: string };

interface StoredPart {
  gpu: string;
  core: CompactIds;
  memory: CompactIds;
}

interface StoredState {
  allocations: {
    id: string;
    phase: Allocation['phase'];
    allocatedAt: number;
    owners: readonly ContainerRef[];
    parts: StoredPart[];
    gpuOpen?: true;
    compute?: Allocation['compute'];
    grown?: Allocation['grown'];
    suspendable?: true;
  }[];
  halves: { memory: CompactIds; takenAt: number; suspendable?: true }[];
  legacy: readonly Omit<LegacyHolding, 'missingSince'>[];
  /** Absent from checkpoints that were written before resource claims existed. */
  units?: readonly Omit<ClaimUnit, 'missingSince'>[];
  doors?: Readonly<Record<string, GpuMode>>;
  /** Absent where the agent never created one. */
  instances?: readonly MadeInstance[];
}

/** The checkpoint as text: versioned, and with a checksum over the state exactly as it is written. */
export function encodeCheckpoint(
  state: Pick<LedgerState, 'allocations' | 'halves' | 'legacy' | 'units' | 'modes' | 'instances'>,
): string {
  const stored: StoredState = {
    allocations: [...state.allocations.values()].map((allocation) => ({
      id: allocation.id,
      phase: allocation.phase,
      allocatedAt: allocation.allocatedAt,
      owners: allocation.owners,
      parts: allocation.parts.map((part) => ({
        gpu: part.gpuUuid,
        core: compactIds(part.coreIds),
        memory: compactIds(part.memoryIds),
      })),
      ...(allocation.isGpuOpen === true ? { gpuOpen: true } : {}),
      compute: allocation.compute,
      grown: allocation.grown,
      suspendable: allocation.suspendable,
    })),
    halves: state.halves.map(({ memoryIds, takenAt, suspendable }) => ({
      memory: compactIds(memoryIds),
      takenAt,
      suspendable,
    })),
    legacy: state.legacy.map(({ container, cores, memoryBlocks, parts, gpusKnown }) => ({
      container,
      cores,
      memoryBlocks,
      parts,
      gpusKnown,
    })),
    units: [...state.units.values()].map(({ missingSince: _, ...unit }) => unit),
    doors: Object.fromEntries(state.modes),
    ...(state.instances.size === 0 ? {} : { instances: [...state.instances.values()] }),
  };
  const text = JSON.stringify(stored);
  return `{"version":${VERSION},"checksum":"${checksum(text)}","state":${text}}\n`;
}

/**
 * Reads a checkpoint of this agent or of tkestack gpu-manager. Never throws: an invalid checkpoint is returned as a
 * reason.
 */
export function decodeCheckpoint(text: string): DecodedCheckpoint {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message}` };
  }
  if (!isObject(document)) return { ok: false, reason: 'not a JSON object' };
  if ('PodGPUMapping' in document) return decodeOriginal(document.PodGPUMapping);
  if (document.version !== VERSION)
    return { ok: false, reason: `version ${String(document.version)} is not ${VERSION}` };
  if (document.checksum !== checksum(JSON.stringify(document.state) ?? ''))
    return { ok: false, reason: 'the checksum does not match' };
  try {
    return { ok: true, format: 'current', content: readState(document.state as StoredState) };
  } catch (error) {
    return { ok: false, reason: `malformed state: ${(error as Error).message}` };
  }
}

function readState(stored: StoredState): CheckpointContent {
  return {
    allocations: stored.allocations.map((allocation) => ({
      id: allocation.id,
      phase: allocation.phase,
      allocatedAt: allocation.allocatedAt,
      owners: allocation.owners,
      missingSince: null,
      parts: allocation.parts.map((part): Part => ({
        gpuUuid: part.gpu,
        coreIds: expandIds(part.core),
        memoryIds: expandIds(part.memory),
      })),
      ...(allocation.gpuOpen === true ? { isGpuOpen: true } : {}),
      ...(allocation.compute === undefined ? {} : { compute: allocation.compute }),
      ...(allocation.grown === undefined ? {} : { grown: allocation.grown }),
      ...(allocation.suspendable === true ? { suspendable: true } : {}),
    })),
    halves: stored.halves.map(({ memory, takenAt, suspendable }) => ({
      memoryIds: expandIds(memory),
      takenAt,
      ...(suspendable === true ? { suspendable } : {}),
    })),
    legacy: stored.legacy.map((holding) => ({ ...holding, missingSince: null })),
    units: (stored.units ?? []).map((unit) => ({ ...unit, missingSince: null })),
    modes: new Map(Object.entries(stored.doors ?? {})),
    instances: stored.instances ?? [],
  };
}

/** `{"<podUID>":{"<container>":{"Devices":["/dev/nvidia0"],"Cores":50,"Memory":268435456}}}` */
function decodeOriginal(mapping: unknown): DecodedCheckpoint {
  if (!isObject(mapping)) return { ok: false, reason: 'PodGPUMapping is not an object' };
  const allocations: OriginalAllocation[] = [];
  for (const [podUid, containers] of Object.entries(mapping)) {
    if (!isObject(containers)) return { ok: false, reason: `PodGPUMapping of pod ${podUid} is not an object` };
    for (const [container, entry] of Object.entries(containers)) {
      const { Devices: devices, Cores: cores, Memory: memoryBytes } = isObject(entry) ? entry : {};
      const whole = Array.isArray(devices) && devices.every((path) => typeof path === 'string');
      if (!whole || typeof cores !== 'number' || typeof memoryBytes !== 'number') {
        return { ok: false, reason: `PodGPUMapping of container ${podUid}/${container} is incomplete` };
      }
      allocations.push({ podUid, container, devicePaths: devices, cores, memoryBytes });
    }
  }
  return { ok: true, format: 'original', allocations };
}

function checksum(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
