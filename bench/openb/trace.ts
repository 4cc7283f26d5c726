import { readFileSync } from 'node:fs';
import { demandOf, type Demand } from '../../src/cluster/placement/demand.js';
import type { NodeShape } from '../../src/cluster/placement/node.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import { uniformTopology, type Topology } from '../../src/gpu/topology/topology.js';

/**
 * Node and pod lists of Alibaba's GPU cluster trace of 2023 (cluster-trace-gpu-v2023), or others in that form: nodes
 * `sn,cpu_milli,memory_mib,gpu,model`, pods `name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec...]`.
 */
const MIB = 1024 * 1024;
const MODEL_LABEL = 'gpu-model';

/**
 * The trace does not state the memory of GPUs: every GPU has 100 blocks, and a part takes the same percentage of blocks
 * as of cores.
 */
const GPU_BYTES = CORES_PER_GPU * MEMORY_BLOCK_BYTES;

/** Every node of the list that has a GPU. */
export function readNodes(file: string): NodeShape[] {
  const topologies = new Map<number, Topology>();
  return readTable(file)
    .map((row): NodeShape => {
      const count = numberOf(row, 'gpu');
      const topology = topologies.get(count) ?? uniformTopology(count, 'PHB');
      topologies.set(count, topology);
      return {
        name: textOf(row, 'sn'),
        labels: { [MODEL_LABEL]: textOf(row, 'model') },
        topology,
        gpus: Array.from({ length: count }, (_, index) => ({
          gpu: {
            index,
            minor: index,
            uuid: `GPU-${index}`,
            pciBusId: '',
            model: textOf(row, 'model'),
            memoryBytes: GPU_BYTES,
            numaNode: null,
          },
          usable: true,
          foreign: false,
          freeCores: CORES_PER_GPU,
          freeMemoryBytes: GPU_BYTES,
        })),
        cpuMilli: numberOf(row, 'cpu_milli'),
        hostMemoryBytes: numberOf(row, 'memory_mib') * MIB,
      };
    })
    .filter((node) => node.gpus.length > 0);
}

/** The request of each pod of the list, including pods without GPUs. */
export function readDemands(file: string): Demand[] {
  const known = new Map<string, Demand>();
  return readTable(file).map((row) => {
    const count = numberOf(row, 'num_gpu');
    const cores = count === 0 ? 0 : count === 1 ? numberOf(row, 'gpu_milli') / 10 : count * CORES_PER_GPU;
    const models = (row.get('gpu_spec') ?? '').split('|').filter((model) => model !== '');
    const demand = demandOf({
      containers:
        cores === 0
          ? []
          : [{ container: 0, cores, memoryBytes: cores < CORES_PER_GPU ? cores * MEMORY_BLOCK_BYTES : 0 }],
      cpuMilli: numberOf(row, 'cpu_milli'),
      hostMemoryBytes: numberOf(row, 'memory_mib') * MIB,
      selector: {
        labels: {},
        terms:
          models.length === 0 ? null : [{ labels: [{ key: MODEL_LABEL, operator: 'In', values: models }], fields: [] }],
      },
    });
    const same = known.get(demand.key) ?? demand;
    known.set(demand.key, same);
    return same;
  });
}

/** Cores that the pod requests, in hundredths of a GPU. */
export function coresOf(demand: Demand): number {
  return demand.containers.reduce((sum, { cores }) => sum + cores, 0);
}

function readTable(file: string): Map<string, string>[] {
  const [header = '', ...lines] = readFileSync(file, 'utf8')
    .split(/\r?\n/u)
    .filter((line) => line.trim() !== '');
  const names = header.split(',');
  return lines.map((line) => new Map(line.split(',').map((cell, at) => [names[at] ?? '', cell])));
}

function textOf(row: Map<string, string>, column: string): string {
  const text = row.get(column);
  if (text === undefined) throw new Error(`the list has no column ${column}`);
  return text;
}

function numberOf(row: Map<string, string>, column: string): number {
  const number = Number(textOf(row, column));
  if (!Number.isFinite(number) || number < 0) throw new Error(`${column} is "${textOf(row, column)}", not a number`);
  return number;
}
