import { bridgeHiddenLevels, type Link } from '../../../gpu/topology/hidden-level.js';
import { parseMatrix } from '../../../gpu/topology/matrix-text.js';
import { levelOfLabel } from '../../../gpu/topology/level.js';
import { levelBetween, linksBetween, uniformTopology, type Topology } from '../../../gpu/topology/topology.js';
import type { GpuDetails } from '../driver.js';
import { reader, DecodeError, type Reader } from '../json-reader.js';

const MIB = 1024 * 1024;
/** Most GPUs that a simulated machine has. */
const MAX_GPUS = 16;

/** One simulated GPU. */
export interface SimGpu extends GpuDetails {
  readonly multiprocessors: number;
}

/** A simulated machine: what docs/simulated-node.md describes, with every default filled in. */
export interface SimNode {
  readonly driverVersion: string;
  /** 1000 x major + 10 x minor. */
  readonly cudaVersion: number;
  readonly gpus: readonly SimGpu[];
  readonly topology: Topology;
}

export type SimNodeResult =
  { readonly ok: true; readonly node: SimNode } | { readonly ok: false; readonly reason: string };

/**
 * Reads the description of a simulated node: its JSON form (docs/simulated-node.md) or the output of `nvidia-smi topo
 * -m`, told apart by the first character. A refusal is one line that names the place.
 */
export function parseSimNode(text: string): SimNodeResult {
  if (!text.trimStart().startsWith('{')) return fromMatrix(text);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message.replaceAll(/\s+/gu, ' ')}` };
  }
  try {
    return { ok: true, node: fromDocument(reader(document, '')) };
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, reason: error.message };
    throw error;
  }
}

/** The JSON form of a node, complete: reading it gives the same node. */
export function printSimNode(node: SimNode): string {
  const label = (a: number, b: number): string => {
    const links = linksBetween(node.topology, a, b);
    return links > 0 ? `NV${links}` : levelBetween(node.topology, a, b);
  };
  const document = {
    driverVersion: node.driverVersion,
    cudaVersion: node.cudaVersion,
    gpus: node.gpus.map((gpu) => ({
      uuid: gpu.uuid,
      model: gpu.model,
      memoryMiB: gpu.memoryBytes / MIB,
      multiprocessors: gpu.multiprocessors,
      computeCapability: gpu.computeCapability,
      minor: gpu.minor,
      pciBusId: gpu.pciBusId,
      numaNode: gpu.numaNode,
    })),
    links: node.gpus.map((_, a) => node.gpus.map((_other, b) => label(a, b))),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** A GPU of the defaults, at place `index`. */
export function defaultGpu(index: number): SimGpu {
  const hex = index.toString(16);
  return {
    index,
    minor: index,
    uuid: `GPU-${hex.padStart(8, '0')}-0000-0000-0000-${hex.padStart(12, '0')}`,
    pciBusId: `00000000:${(4 + index).toString(16).toUpperCase().padStart(2, '0')}:00.0`,
    model: 'Tesla V100-SXM2-16GB',
    memoryBytes: 16384 * MIB,
    numaNode: null,
    computeCapability: '7.0',
    ecc: false,
    mig: false,
    multiprocessors: 80,
  };
}

const DEFAULTS = { driverVersion: '580.95.05', cudaVersion: 13000 } as const;

function fromMatrix(text: string): SimNodeResult {
  const matrix = parseMatrix(text);
  if (!matrix.ok) return { ok: false, reason: matrix.reason };
  if (matrix.gpus.length > MAX_GPUS)
    return { ok: false, reason: `${matrix.gpus.length} GPUs, a simulated node has at most ${MAX_GPUS}` };
  const gpus = matrix.gpus.map((gpu, index) => ({ ...defaultGpu(index), numaNode: gpu.numaNode }));
  return { ok: true, node: { ...DEFAULTS, gpus, topology: matrix.topology } };
}

function fromDocument(root: Reader): SimNode {
  const entries = root.field('gpus').list();
  if (entries.length < 1 || entries.length > MAX_GPUS) throw root.field('gpus').wrong(`1 to ${MAX_GPUS} GPUs`);
  const gpus = entries.map(readGpu);
  for (const [at, entry] of entries.entries()) {
    for (const key of ['uuid', 'minor', 'pciBusId'] as const) {
      const first = gpus.findIndex((gpu) => gpu[key] === gpus[at]?.[key]);
      if (first !== at) throw entry.field(key).wrong(`a value of its own, not that of gpus[${first}]`);
    }
  }
  const links = root.field('links');
  return {
    driverVersion: root.field('driverVersion').text(DEFAULTS.driverVersion),
    cudaVersion: root.field('cudaVersion').integer(DEFAULTS.cudaVersion, 1000, 999_999),
    gpus,
    topology: links.absent ? uniformTopology(gpus.length, 'PHB') : readLinks(links, gpus),
  };
}

function readGpu(gpu: Reader, index: number): SimGpu {
  const given = defaultGpu(index);
  return {
    ...given,
    uuid: gpu.field('uuid').text(given.uuid, /^GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u),
    model: gpu.field('model').text(given.model),
    memoryBytes: gpu.field('memoryMiB').integer(given.memoryBytes / MIB, 1, 16_777_216) * MIB,
    multiprocessors: gpu.field('multiprocessors').integer(given.multiprocessors, 1, 4096),
    computeCapability: gpu.field('computeCapability').text(given.computeCapability ?? '', /^\d{1,2}\.\d$/u),
    minor: gpu.field('minor').integer(given.minor, 0, 255),
    pciBusId: gpu.field('pciBusId').text(given.pciBusId, /^[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]$/u),
    numaNode: gpu.field('numaNode').integerOrNull(given.numaNode, 0, 1023),
  };
}

function readLinks(links: Reader, gpus: readonly SimGpu[]): Topology {
  const rows = links.list();
  if (rows.length !== gpus.length) throw links.wrong(`${gpus.length} rows`);
  const matrix = rows.map((row, a) => {
    const cells = row.list();
    if (cells.length !== gpus.length) throw row.wrong(`${gpus.length} labels`);
    return cells.map((cell, b) => readLink(cell, a === b));
  });
  for (const [a, row] of matrix.entries()) {
    for (const [b, link] of row.entries()) {
      const back = matrix[b]?.[a] as Link;
      const cell = rows[a]?.list()[b] as Reader;
      if (link.level !== back.level || link.nvlinks !== back.nvlinks)
        throw cell.wrong(`the label of links[${b}][${a}]`);
    }
  }
  const affinity = (gpu: SimGpu) => (gpu.numaNode === null ? null : String(gpu.numaNode));
  return bridgeHiddenLevels(matrix.map((row, at) => ({ links: row, affinity: affinity(gpus[at] as SimGpu) })));
}

function readLink(cell: Reader, diagonal: boolean): Link {
  const label = cell.text('');
  const level = levelOfLabel(label);
  const nvlinks = Number(/^NV([1-9]\d{0,2})$/u.exec(label)?.[1] ?? 0);
  if ((level === 'X') !== diagonal) throw cell.wrong(diagonal ? 'X' : 'a connection, X is for the diagonal');
  if (level === null && nvlinks === 0) throw cell.wrong('X, PIX, PXB, PHB, NODE, SYS or NV<n>');
  return { level, nvlinks };
}
