import type { Sample } from '../../http/metrics.js';
import type { NodeMetric } from './node-metric.js';
import type { AllocationSnapshot, SliceSnapshot } from './view.js';

const LABELS = ['namespace', 'pod', 'container', 'gpu'] as const;

/** The container that runs in an allocation now, if the kubelet has named one. */
function runningOf({ owners }: AllocationSnapshot): Record<'namespace' | 'pod' | 'container', string> | null {
  const owner = owners.findLast(({ podUid }) => podUid !== '');
  return owner === undefined ? null : { namespace: owner.namespace, pod: owner.pod, container: owner.container };
}

/** Labels of each slice: one object for all metrics of a scrape, so that they are printed once. */
const known = new WeakMap<SliceSnapshot, Sample['labels']>();

function labelsOf(allocation: AllocationSnapshot, slice: SliceSnapshot): Sample['labels'] | null {
  const before = known.get(slice);
  if (before !== undefined) return before;
  const running = runningOf(allocation);
  if (running === null) return null;
  const labels = { ...running, gpu: String(slice.gpuIndex) };
  known.set(slice, labels);
  return labels;
}

/** A value of each container on each of its GPUs; null where there is none. */
function slice(
  name: string,
  type: NodeMetric['type'],
  help: string,
  value: (slice: SliceSnapshot) => number | null,
): NodeMetric {
  return {
    name,
    type,
    help,
    labels: LABELS,
    *read({ snapshot }): Iterable<Sample> {
      for (const allocation of snapshot.allocations) {
        for (const one of allocation.slices) {
          const found = value(one);
          if (found === null) continue;
          const labels = labelsOf(allocation, one);
          if (labels !== null) yield { labels, value: found };
        }
      }
    },
  };
}

function counter(
  name: string,
  help: string,
  value: (counters: NonNullable<SliceSnapshot['counters']>) => number,
): NodeMetric {
  return slice(name, 'counter', help, ({ counters }) => (counters === null ? null : value(counters)));
}

/** A counter of each container, whatever GPUs it has. */
function containerCounter(name: string, help: string, value: (allocation: AllocationSnapshot) => number): NodeMetric {
  return {
    name,
    type: 'counter',
    help,
    labels: ['namespace', 'pod', 'container'],
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        const labels = runningOf(allocation);
        if (labels !== null) yield { labels, value: value(allocation) };
      }
    },
  };
}

/**
 * Metrics of each container on each of its GPUs. Pids and allocation ids are no labels: values that change with every
 * restart would each create a series.
 */
export const CONTAINER_METRICS: readonly NodeMetric[] = [
  slice(
    'vgpu_container_requested_ratio',
    'gauge',
    'Fraction of the GPU that the container was given',
    ({ givenCores }) => givenCores / 100,
  ),
  slice(
    'vgpu_container_limit_ratio',
    'gauge',
    "Fraction of the GPU that is the container's own now",
    ({ share }) => share / 100,
  ),
  slice(
    'vgpu_container_soft_limit_ratio',
    'gauge',
    'Fraction that it may use while others leave the GPU idle; absent under a hard limit',
    ({ softLimit }) => (softLimit === null ? null : softLimit / 100),
  ),
  slice(
    'vgpu_container_used_ratio',
    'gauge',
    'Fraction of the GPU that it uses',
    ({ usedPercent }) => usedPercent / 100,
  ),
  slice(
    'vgpu_container_memory_requested_bytes',
    'gauge',
    'Memory of the GPU that it was given; absent where it has all',
    ({ givenMemoryBytes }) => givenMemoryBytes,
  ),
  slice(
    'vgpu_container_memory_limit_bytes',
    'gauge',
    'Memory that it may use now; absent where it is not limited',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  ),
  slice(
    'vgpu_container_memory_used_bytes',
    'gauge',
    'Memory that it uses, as the driver counts',
    ({ usedMemoryBytes }) => usedMemoryBytes,
  ),
  slice(
    'vgpu_container_memory_driver_bytes',
    'gauge',
    'Part of that which the driver keeps for itself',
    ({ driverMemoryBytes }) => driverMemoryBytes,
  ),
  slice(
    'vgpu_container_host_backed_memory_limit_bytes',
    'gauge',
    'Memory that it may hold on the host, beyond its memory limit; absent where it may not',
    ({ hostBackedLimitBytes: bytes }) => (bytes === 0 ? null : bytes),
  ),
  slice(
    'vgpu_container_host_backed_memory_bytes',
    'gauge',
    'Memory that it holds on the host, beyond its memory limit; absent where it neither holds nor may hold any',
    ({ hostBackedLimitBytes, hostBackedBytes }) =>
      hostBackedLimitBytes === 0 && hostBackedBytes === 0 ? null : hostBackedBytes,
  ),
  slice(
    'vgpu_container_memory_peak_bytes',
    'gauge',
    'Most that it held at once, by its own account',
    ({ peakMemoryBytes }) => peakMemoryBytes,
  ),
  slice('vgpu_container_processes', 'gauge', 'Its processes on the GPU', ({ pids }) => pids.length),
  counter(
    'vgpu_container_gpu_seconds_total',
    'GPU time that its launches were charged',
    ({ chargedSeconds }) => chargedSeconds,
  ),
  counter(
    'vgpu_container_throttled_seconds_total',
    'Time that its launches waited for its share, summed over threads',
    ({ throttledSeconds }) => throttledSeconds,
  ),
  counter('vgpu_container_launches_total', 'Kernel launches', ({ launches }) => launches),
  counter('vgpu_container_delayed_launches_total', 'Launches that had to wait', ({ waits }) => waits),
  counter(
    'vgpu_container_memory_denied_bytes_total',
    'Memory that was refused to it',
    ({ deniedBytes }) => deniedBytes,
  ),
  {
    name: 'vgpu_container_memory_denials_total',
    type: 'counter',
    help: 'Calls that memory was refused to, by kind of call; kinds that never were are absent',
    labels: [...LABELS, 'api'],
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        const labels = runningOf(allocation);
        if (labels === null) continue;
        for (const one of allocation.slices) {
          for (const [api, value] of Object.entries(one.counters?.denied ?? {}))
            if (value > 0) yield { labels: { ...labels, gpu: String(one.gpuIndex), api }, value };
        }
      }
    },
  },
  slice(
    'vgpu_container_control_error_ratio',
    'gauge',
    'Fraction of the GPU it should have had less what it had, in the last seconds; absent while it did not want its share',
    ({ controlError }) => controlError,
  ),
  slice(
    'vgpu_container_charge_correction_ratio',
    'gauge',
    'Factor on what its launches are charged; away from 1 where the driver reports something else',
    ({ correction }) => correction,
  ),
  slice(
    'vgpu_container_time_drift_ratio',
    'gauge',
    'GPU time that the driver reports less what was charged, in the last seconds, as a fraction of the GPU; absent where it reports none',
    ({ timeDrift }) => timeDrift,
  ),
  slice(
    'vgpu_container_memory_drift_bytes',
    'gauge',
    'Memory that the driver counts less what the container accounts for; absent where it does not count',
    ({ memoryDriftBytes }) => memoryDriftBytes,
  ),
  containerCounter(
    'vgpu_container_refused_connections_total',
    'Connections to its socket that were cut off: too many, too slow, or in no language of it',
    ({ refusedConnections }) => refusedConnections,
  ),
  containerCounter(
    'vgpu_container_socket_floods_total',
    'How often its socket was shut for a while because of too many connections',
    ({ socketFloods }) => socketFloods,
  ),
  {
    name: 'vgpu_container_unenforced',
    type: 'gauge',
    help: '1 for containers whose limits are not enforced, only compared with their use; others are absent',
    labels: ['namespace', 'pod', 'container'],
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        const labels = allocation.unenforced ? runningOf(allocation) : null;
        if (labels !== null) yield { labels, value: 1 };
      }
    },
  },
  {
    name: 'vgpu_container_findings',
    type: 'gauge',
    help: 'What the audit has against the container now, by code; none is absent',
    labels: ['namespace', 'pod', 'container', 'code'],
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        const labels = runningOf(allocation);
        if (labels === null) continue;
        const codes = new Map<string, number>();
        for (const { code } of allocation.findings) codes.set(code, (codes.get(code) ?? 0) + 1);
        for (const [code, value] of codes) yield { labels: { ...labels, code }, value };
      }
    },
  },
];
