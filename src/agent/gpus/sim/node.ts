import * as z from 'zod';
import { bridgeHiddenLevels, type Link } from '../../../gpu/topology/hidden-level.js';
import { parseMatrix } from '../../../gpu/topology/matrix-text.js';
import { levelOfLabel } from '../../../gpu/topology/level.js';
import { levelBetween, linksBetween, uniformTopology, type Topology } from '../../../gpu/topology/topology.js';
import type { GpuDetails } from '../driver.js';
import { integer, parseDocument, text } from '../document.js';
import { divideGpu } from './mig-profiles.js';

const MIB = 1024 * 1024;
/** A simulated machine has at most this many GPUs. */
const MAX_GPUS = 16;
/** Most MIG instances that it has. */
const MAX_INSTANCES = 56;

/** One simulated GPU. */
export interface SimGpu extends GpuDetails {
  readonly multiprocessors: number;
  /** Profiles of the instances that MIG divides it into; null where MIG is off. */
  readonly cut: readonly string[] | null;
}

/** A simulated machine as docs/design/simulated-node.md describes it, with every default filled in. */
export interface SimNode {
  readonly driverVersion: string;
  /** 1000 x major + 10 x minor. */
  readonly cudaVersion: number;
  readonly gpus: readonly SimGpu[];
  /** MIG instances on the GPUs, in the driver's order. */
  readonly instances: readonly GpuDetails[];
  readonly topology: Topology;
}

export type SimNodeResult =
  { readonly ok: true; readonly node: SimNode } | { readonly ok: false; readonly reason: string };

/**
 * Reads the description of a simulated node: its JSON form (docs/design/simulated-node.md) or the output of
 * `nvidia-smi topo -m`, distinguished by the first character. A refusal is one line that names the place.
 */
export function parseSimNode(document: string): SimNodeResult {
  if (!document.trimStart().startsWith('{')) return fromMatrix(document);
  const parsed = parseDocument(document, schema);
  return parsed.ok ? { ok: true, node: parsed.value } : parsed;
}

/** The complete JSON form of a node: reading it returns the same node. */
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
      ...(gpu.cut === null ? {} : { mig: gpu.cut }),
    })),
    links: node.gpus.map((_, a) => node.gpus.map((_other, b) => label(a, b))),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The default GPU at position `index`. */
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
    cut: null,
  };
}

const DEFAULTS = { driverVersion: '580.95.05', cudaVersion: 13000 } as const;

function fromMatrix(document: string): SimNodeResult {
  const matrix = parseMatrix(document);
  if (!matrix.ok) return { ok: false, reason: matrix.reason };
  if (matrix.gpus.length > MAX_GPUS)
    return { ok: false, reason: `${matrix.gpus.length} GPUs, a simulated node has at most ${MAX_GPUS}` };
  const gpus = matrix.gpus.map((gpu, index) => ({ ...defaultGpu(index), numaNode: gpu.numaNode }));
  return { ok: true, node: { ...DEFAULTS, gpus, instances: [], topology: matrix.topology } };
}

const gpuSchema = z.object(
  {
    uuid: text({
      like: defaultGpu(0).uuid,
      pattern: /^GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u,
    }).optional(),
    model: text().optional(),
    memoryMiB: integer(1, 16_777_216).optional(),
    multiprocessors: integer(1, 4096).optional(),
    computeCapability: text({ like: '7.0', pattern: /^\d{1,2}\.\d$/u }).optional(),
    minor: integer(0, 255).optional(),
    pciBusId: text({
      like: defaultGpu(0).pciBusId,
      pattern: /^[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]$/u,
    }).optional(),
    numaNode: integer(0, 1023).nullable().optional(),
    mig: z.array(text(), 'a list').max(7, 'at most 7 instances').nullable().optional(),
  },
  'an object',
);

const schema = z
  .object(
    {
      driverVersion: text().default(DEFAULTS.driverVersion),
      cudaVersion: integer(1000, 999_999).default(DEFAULTS.cudaVersion),
      gpus: z.array(gpuSchema, 'a list').min(1, `1 to ${MAX_GPUS} GPUs`).max(MAX_GPUS, `1 to ${MAX_GPUS} GPUs`),
      links: z.array(z.array(text(), 'a list'), 'a list').optional(),
    },
    'an object',
  )
  .transform(({ driverVersion, cudaVersion, gpus: given, links }, context): SimNode => {
    const refuse: Refuse = (path, message, input) => context.addIssue({ code: 'custom', path, message, input });
    const gpus = given.map(completed);
    for (const [at, gpu] of gpus.entries()) {
      for (const key of ['uuid', 'minor', 'pciBusId'] as const) {
        const first = gpus.findIndex((other) => other[key] === gpu[key]);
        if (first !== at) refuse(['gpus', at, key], `a value of its own, not that of gpus[${first}]`, gpu[key]);
      }
    }
    const topology =
      links === undefined ? uniformTopology(gpus.length, 'PHB') : (linked(links, gpus, refuse) ?? z.NEVER);
    return { driverVersion, cudaVersion, gpus, instances: instancesOf(gpus, refuse), topology };
  });

function completed(given: z.infer<typeof gpuSchema>, index: number): SimGpu {
  const { memoryMiB, mig, ...others } = given;
  const defaults = defaultGpu(index);
  return {
    ...defaults,
    ...Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined)),
    ...(memoryMiB === undefined ? {} : { memoryBytes: memoryMiB * MIB }),
    mig: mig !== undefined && mig !== null,
    cut: mig ?? null,
  };
}

type Refuse = (path: (string | number)[], expected: string, found: unknown) => void;

/** The instances of every GPU that MIG divides; none of a GPU whose division is refused. */
function instancesOf(gpus: readonly SimGpu[], refuse: Refuse): readonly GpuDetails[] {
  const instances: GpuDetails[] = [];
  for (const [at, { cut, multiprocessors: _own, ...gpu }] of gpus.entries()) {
    if (cut === null) continue;
    const divided = divideGpu(gpu, cut, gpus.length + instances.length);
    if (typeof divided === 'string') refuse(['gpus', at, 'mig'], divided, cut);
    else instances.push(...divided);
  }
  if (instances.length > MAX_INSTANCES) refuse(['gpus'], `at most ${MAX_INSTANCES} MIG instances`, instances.length);
  return instances;
}

/** The topology that labels describe; null if one was refused. */
function linked(labels: readonly (readonly string[])[], gpus: readonly SimGpu[], refuse: Refuse): Topology | null {
  const refused = (path: (string | number)[], expected: string, found: unknown): null => {
    refuse(['links', ...path], expected, found);
    return null;
  };
  if (labels.length !== gpus.length) return refused([], `${gpus.length} rows`, labels);
  const matrix: Link[][] = [];
  for (const [a, row] of labels.entries()) {
    if (row.length !== gpus.length) return refused([a], `${gpus.length} labels`, row);
    const links: Link[] = [];
    for (const [b, label] of row.entries()) {
      const link = linkOf(label, a === b);
      if (typeof link === 'string') return refused([a, b], link, label);
      links.push(link);
    }
    matrix.push(links);
  }
  for (const [a, row] of matrix.entries()) {
    for (const [b, link] of row.entries()) {
      const back = matrix[b]?.[a] as Link;
      if (link.level !== back.level || link.nvlinks !== back.nvlinks)
        return refused([a, b], `the label of links[${b}][${a}]`, labels[a]?.[b]);
    }
  }
  const affinity = (gpu: SimGpu) => (gpu.numaNode === null ? null : String(gpu.numaNode));
  return bridgeHiddenLevels(matrix.map((row, at) => ({ links: row, affinity: affinity(gpus[at] as SimGpu) })));
}

/** The meaning of a label, or a text about the expected labels. */
function linkOf(label: string, isDiagonal: boolean): Link | string {
  const level = levelOfLabel(label);
  const nvlinks = Number(/^NV([1-9]\d{0,2})$/u.exec(label)?.[1] ?? 0);
  if ((level === 'X') !== isDiagonal) return isDiagonal ? 'X' : 'a connection, X is for the diagonal';
  if (level === null && nvlinks === 0) return 'X, PIX, PXB, PHB, NODE, SYS or NV<n>';
  return { level, nvlinks };
}
