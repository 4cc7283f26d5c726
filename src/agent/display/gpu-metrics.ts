import type { Sample } from '../../http/metrics.js';
import type { NodeMetric } from './node-metric.js';
import type { GpuSnapshot } from '../node/index.js';

const LABELS = ['gpu', 'uuid'] as const;

/** A metric with a value for each GPU; GPUs without a value are left out. */
function gpu(
  name: string,
  type: NodeMetric['type'],
  help: string,
  value: (gpu: GpuSnapshot) => number | null,
): NodeMetric {
  return {
    name,
    type,
    help,
    labels: LABELS,
    *read({ snapshot }): Iterable<Sample> {
      for (const one of snapshot.gpus) {
        const known = value(one);
        if (known !== null) yield { labels: labelsOf(one), value: known };
      }
    },
  };
}

function labelsOf({ index, uuid }: GpuSnapshot): Record<(typeof LABELS)[number], string> {
  return { gpu: String(index), uuid };
}

const STATUSES: readonly GpuSnapshot['health']['status'][] = ['healthy', 'probation', 'reset', 'failed', 'lost'];

export const GPU_METRICS: readonly NodeMetric[] = [
  {
    name: 'vgpu_gpu_info',
    type: 'gauge',
    help: 'Always 1; its labels describe the GPU',
    labels: [...LABELS, 'model', 'pci_bus_id', 'numa_node'],
    *read({ snapshot }) {
      for (const one of snapshot.gpus) {
        yield {
          labels: {
            ...labelsOf(one),
            model: one.model,
            pci_bus_id: one.pciBusId,
            numa_node: one.numaNode === null ? '' : String(one.numaNode),
          },
          value: 1,
        };
      }
    },
  },
  {
    name: 'vgpu_gpu_mig_info',
    type: 'gauge',
    help: 'Always 1, of MIG instances only; its labels say which part of which GPU it is',
    labels: [...LABELS, 'profile', 'parent_uuid', 'gpu_instance', 'compute_instance'],
    *read({ snapshot }) {
      for (const one of snapshot.gpus) {
        if (one.instance === undefined) continue;
        const { profile, parentUuid, gpuInstance, computeInstance } = one.instance;
        yield {
          labels: {
            ...labelsOf(one),
            profile,
            parent_uuid: parentUuid,
            gpu_instance: String(gpuInstance),
            compute_instance: String(computeInstance),
          },
          value: 1,
        };
      }
    },
  },
  {
    name: 'vgpu_gpu_health',
    type: 'gauge',
    help: '1 for the status that the GPU has, 0 for the others',
    labels: [...LABELS, 'status'],
    *read({ snapshot }) {
      for (const one of snapshot.gpus)
        for (const status of STATUSES)
          yield { labels: { ...labelsOf(one), status }, value: one.health.status === status ? 1 : 0 };
    },
  },
  gpu('vgpu_gpu_usable', 'gauge', '1 while new containers may be placed on the GPU', ({ usable }) => (usable ? 1 : 0)),
  gpu(
    'vgpu_gpu_memory_limits_by_driver',
    'gauge',
    '1 if the driver enforces memory limits on the GPU, 0 if the control library has to although the driver is new enough',
    ({ memoryEnforcer }) => (memoryEnforcer === undefined ? null : memoryEnforcer.by === 'driver' ? 1 : 0),
  ),
  gpu('vgpu_gpu_utilization_ratio', 'gauge', 'Fraction of the time in which a kernel ran', ({ usedPercent }) =>
    usedPercent === null ? null : usedPercent / 100,
  ),
  gpu(
    'vgpu_gpu_given_ratio',
    'gauge',
    'Fraction of the GPU that is allocated to containers',
    ({ allocatedCores }) => allocatedCores / 100,
  ),
  gpu('vgpu_gpu_memory_bytes', 'gauge', 'Memory of the GPU', ({ memoryBytes }) => memoryBytes),
  gpu(
    'vgpu_gpu_memory_given_bytes',
    'gauge',
    'Memory of the GPU that is allocated to containers',
    ({ allocatedMemoryBytes }) => allocatedMemoryBytes,
  ),
  gpu(
    'vgpu_gpu_memory_used_bytes',
    'gauge',
    'Memory in use on the GPU, by all processes',
    ({ usedMemoryBytes }) => usedMemoryBytes,
  ),
  gpu(
    'vgpu_gpu_temperature_celsius',
    'gauge',
    'Temperature of the GPU',
    ({ temperatureCelsius }) => temperatureCelsius,
  ),
  gpu('vgpu_gpu_power_watts', 'gauge', 'Power that the GPU draws', ({ powerWatts }) => powerWatts),
  gpu(
    'vgpu_gpu_foreign_processes',
    'gauge',
    'Processes on the GPU that belong to no container with an allocation on it',
    ({ foreignPids }) => foreignPids.length,
  ),
  gpu('vgpu_gpu_looks_total', 'counter', 'Samples of the GPU that were taken', ({ samples }) => samples),
  gpu('vgpu_gpu_failed_looks_total', 'counter', 'Samples of the GPU that failed', ({ failedSamples }) => failedSamples),
];
