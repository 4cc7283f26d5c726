import { NODE_INVENTORY_KEY } from './annotations.js';
import type { Gpu, MigInstance } from './gpu.js';
import { isInstance } from './mig.js';
import { CORES_PER_GPU } from './resources.js';
import { levelOfLabel, type Level } from './topology/level.js';
import { levelBetween, linksBetween, topologyOfPairs, type Topology } from './topology/topology.js';

/**
 * The GPUs of a node, which its agent publishes for the scheduler extender in an annotation (`NODE_INVENTORY_KEY`).
 * Written whenever it changes, read by every extender. JSON, a few hundred bytes per GPU.
 *
 *     {"version":1,
 *      "cards":[{"index":0,"minor":0,"uuid":"GPU-...","pciBusId":"00000000:3B:00.0","model":"...","memoryBytes":85899345920,"numaNode":0,
 *                "health":"healthy","foreign":false,"freeCores":100,"freeMemoryBytes":85899345920}, ...],
 *      "resize":true,
 *      "levels":[["PIX","SYS"],["SYS"]],
 *      "nvlinks":[[4,0],[0]]}
 *
 * `resize` is absent on a node that does not allow it. A GPU whose multiprocessors are shared has `"compute":"sm"`. A
 * node with a suspend factor has `suspendFactor`, and each of its GPUs has `offeredCores` and `offeredMemoryBytes`,
 * which are free for suspendable pods. `levels[a][k]` and `nvlinks[a][k]` are of the pair (a, a + 1 + k) of positions
 * in `cards`: the upper triangle of both matrices. A MIG instance is a separate entry with `mig`:
 * `{"profile":"1g.10gb","parentUuid":"GPU-...","gpuInstance":7,"computeInstance":0,"multiprocessors":16}`.
 * Readers ignore fields that they do not know; a change that they could not ignore gets a new version.
 */
export interface NodeInventory {
  readonly gpus: readonly InventoryGpu[];
  /** Position i is `gpus[i]`. */
  readonly topology: Topology;
  /** Whether running containers may get more than they request; absent: no. */
  readonly allowsResize?: boolean;
  /** How many times its real capacity each GPU offers, the rest to suspendable containers; absent: 1. */
  readonly suspendFactor?: number;
}

export interface InventoryGpu {
  readonly gpu: Gpu;
  /** Whether pods may get the GPU. */
  readonly healthy: boolean;
  /** Why it is unhealthy, in words; empty for a healthy GPU. */
  readonly reason: string;
  /** Whether foreign processes use it. */
  readonly foreign: boolean;
  /** Free cores in the agent's ledger, in which allocations in their grace period still count. */
  readonly freeCores: number;
  readonly freeMemoryBytes: number;
  /** What is free for suspendable containers, where the node has a suspend factor. */
  readonly offered?: { readonly freeCores: number; readonly freeMemoryBytes: number };
}

export type InventoryResult =
  { readonly ok: true; readonly inventory: NodeInventory } | { readonly ok: false; readonly reason: string };

/** The reason of a GPU that the device plugin does not offer, because claims get it. */
export const THROUGH_CLAIMS = 'it is allocated through resource claims';

const VERSION = 1;

/** Maximum number of GPUs of a node: sets of GPUs are bits of a number. MIG instances come after them, in no set. */
export const MAX_GPUS = 31;
const MAX_ENTRIES = 128;

/** The annotation's value. Equal inventories give equal texts, so that writers can tell whether anything changed. */
export function encodeInventory(inventory: NodeInventory): string {
  const count = inventory.gpus.length;
  const triangle = <T>(of: (a: number, b: number) => T): T[][] =>
    Array.from({ length: Math.max(0, count - 1) }, (_, a) =>
      Array.from({ length: count - 1 - a }, (_unused, k) => of(a, a + 1 + k)),
    );
  return JSON.stringify({
    version: VERSION,
    cards: inventory.gpus.map(({ gpu, healthy, reason, foreign, freeCores, freeMemoryBytes, offered }) => ({
      index: gpu.index,
      minor: gpu.minor,
      uuid: gpu.uuid,
      pciBusId: gpu.pciBusId,
      model: gpu.model,
      memoryBytes: gpu.memoryBytes,
      numaNode: gpu.numaNode,
      compute: gpu.compute,
      mig: gpu.instance,
      health: healthy ? 'healthy' : 'unhealthy',
      ...(reason === '' ? {} : { reason }),
      foreign,
      freeCores,
      freeMemoryBytes,
      offeredCores: offered?.freeCores,
      offeredMemoryBytes: offered?.freeMemoryBytes,
    })),
    suspendFactor: inventory.suspendFactor,
    ...(inventory.allowsResize === true ? { resize: true } : {}),
    levels: triangle((a, b) => levelBetween(inventory.topology, a, b)),
    nvlinks: triangle((a, b) => linksBetween(inventory.topology, a, b)),
  });
}

/** The GPUs that the annotations of a node name; null without an agent, and where they cannot be read. */
export function inventoryOf(annotations: Readonly<Record<string, string>>): NodeInventory | null {
  const text = annotations[NODE_INVENTORY_KEY];
  const decoded = text === undefined ? null : decodeInventory(text);
  return decoded?.ok === true ? decoded.inventory : null;
}

/** Reads the annotation. Never throws: returns a consistent inventory, or a refusal that names the first problem. */
export function decodeInventory(text: string): InventoryResult {
  try {
    return { ok: true, inventory: readInventory(parse(text)) };
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The document is invalid; caught in this file. */
class Malformed extends Error {}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Malformed('not JSON');
  }
}

function readInventory(value: unknown): NodeInventory {
  const document = record(value, 'the inventory');
  if (document.version !== VERSION)
    throw new Malformed(`version ${JSON.stringify(document.version)}, this reads ${VERSION}`);
  const gpus = list(document.cards, 'cards').map((gpu, at) => readGpu(record(gpu, `GPU ${at}`), `GPU ${at}`));
  if (gpus.slice(MAX_GPUS).some(({ gpu }) => !isInstance(gpu)) || gpus.length > MAX_ENTRIES)
    throw new Malformed(
      `${gpus.length} GPUs, at most ${MAX_GPUS} are supported, followed by MIG instances up to ${MAX_ENTRIES} entries`,
    );
  for (const [at, { gpu }] of gpus.entries()) {
    const other = gpus.findIndex((candidate) => candidate.gpu.index === gpu.index || candidate.gpu.uuid === gpu.uuid);
    if (other !== at) throw new Malformed(`GPUs ${other} and ${at} have the same index or UUID`);
  }
  const topology = readTopology(gpus.length, document);
  const factor = document.suspendFactor === undefined ? 1 : whole(document.suspendFactor, 'suspendFactor');
  return {
    gpus,
    topology,
    ...(document.resize === true ? { allowsResize: true } : {}),
    ...(factor > 1 ? { suspendFactor: factor } : {}),
  };
}

function readGpu(entry: Record<string, unknown>, where: string): InventoryGpu {
  const memoryBytes = whole(entry.memoryBytes, `${where}: memoryBytes`);
  const gpu: Gpu = {
    index: whole(entry.index, `${where}: index`),
    minor: whole(entry.minor, `${where}: minor`),
    uuid: text(entry.uuid, `${where}: uuid`),
    pciBusId: text(entry.pciBusId, `${where}: pciBusId`),
    model: text(entry.model, `${where}: model`),
    memoryBytes,
    numaNode:
      entry.numaNode === null || entry.numaNode === undefined ? null : whole(entry.numaNode, `${where}: numaNode`),
    ...(entry.compute === 'sm' ? { compute: 'sm' } : {}),
    ...(entry.mig === undefined ? {} : { instance: readInstance(record(entry.mig, `${where}: mig`), `${where}: mig`) }),
  };
  return {
    gpu,
    healthy: entry.health === 'healthy',
    reason: entry.reason === undefined ? '' : text(entry.reason, `${where}: reason`),
    foreign: entry.foreign === true,
    freeCores: Math.min(CORES_PER_GPU, whole(entry.freeCores, `${where}: freeCores`)),
    freeMemoryBytes: Math.min(memoryBytes, whole(entry.freeMemoryBytes, `${where}: freeMemoryBytes`)),
    ...(entry.offeredCores === undefined
      ? {}
      : {
          offered: {
            freeCores: Math.min(CORES_PER_GPU, whole(entry.offeredCores, `${where}: offeredCores`)),
            freeMemoryBytes: Math.min(memoryBytes, whole(entry.offeredMemoryBytes, `${where}: offeredMemoryBytes`)),
          },
        }),
  };
}

function readInstance(entry: Record<string, unknown>, where: string): MigInstance {
  return {
    profile: text(entry.profile, `${where}.profile`),
    parentUuid: text(entry.parentUuid, `${where}.parentUuid`),
    gpuInstance: whole(entry.gpuInstance, `${where}.gpuInstance`),
    computeInstance: whole(entry.computeInstance, `${where}.computeInstance`),
    multiprocessors: entry.multiprocessors === null ? null : whole(entry.multiprocessors, `${where}.multiprocessors`),
  };
}

function readTopology(count: number, document: Record<string, unknown>): Topology {
  const levels = triangle(document.levels, count, 'levels', readLevel);
  const nvlinks = triangle(document.nvlinks, count, 'nvlinks', whole);
  return topologyOfPairs(count, (a, b) => ({
    level: levels[a]?.[b - a - 1] as Level,
    nvlinks: nvlinks[a]?.[b - a - 1] as number,
  }));
}

function triangle<T>(value: unknown, count: number, where: string, read: (cell: unknown, where: string) => T): T[][] {
  const rows = list(value, where).map((row, a) =>
    list(row, `${where}[${a}]`).map((cell, k) => read(cell, `${where}[${a}][${k}]`)),
  );
  const right = rows.length === Math.max(0, count - 1) && rows.every((row, a) => row.length === count - 1 - a);
  if (!right) throw new Malformed(`${where} is not the upper triangle of ${count} GPUs`);
  return rows;
}

function readLevel(value: unknown, where: string): Level {
  const level = levelOfLabel(text(value, where));
  if (level === null || level === 'X')
    throw new Malformed(`${where} is ${JSON.stringify(value)}, no level between two GPUs`);
  return level;
}

function record(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Malformed(`${where} is no object`);
  return value as Record<string, unknown>;
}

function list(value: unknown, where: string): unknown[] {
  if (!Array.isArray(value)) throw new Malformed(`${where} is no list`);
  return value;
}

function text(value: unknown, where: string): string {
  if (typeof value !== 'string' || value.length > 256)
    throw new Malformed(`${where} is no text of at most 256 characters`);
  return value;
}

function whole(value: unknown, where: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Malformed(`${where} is no whole number`);
  return value;
}
