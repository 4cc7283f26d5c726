import type { Priority } from '../../gpu/priority.js';
import type { Sample } from '../../http/metrics.js';
import type { NodeMetric } from './node-metric.js';
import type { AllocationSnapshot, SliceSnapshot, SuspensionSnapshot } from '../node/index.js';

/** Absent: nothing is printed. */
const PRIORITY_VALUES: Readonly<Record<Priority, number | null>> = { high: 1, normal: null, low: -1 };
const LABELS = ['namespace', 'pod', 'container', 'gpu'] as const;

/** The container that uses an allocation now, if the kubelet has named one. */
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

/** A metric with a value for each container on each of its GPUs; null values are left out. */
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

/** A counter of each container, independent of GPUs. */
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

/** A figure of each container that is suspended, or on its way there or back. */
function suspension(
  name: string,
  help: string,
  value: (suspension: SuspensionSnapshot, atMs: number) => number | null,
): NodeMetric {
  return {
    name,
    type: 'gauge',
    help,
    labels: ['namespace', 'pod', 'container', 'by'],
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        const labels = allocation.suspension === undefined ? null : runningOf(allocation);
        if (labels === null || allocation.suspension === undefined) continue;
        const found = value(allocation.suspension, snapshot.atMs);
        if (found !== null) yield { labels: { ...labels, by: allocation.suspension.by }, value: found };
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
    'Fraction of the GPU that is allocated to the container',
    ({ allocatedCores }) => allocatedCores / 100,
  ),
  slice(
    'vgpu_container_limit_ratio',
    'gauge',
    'Present hard share of the container as a fraction of the GPU',
    ({ share }) => share / 100,
  ),
  slice(
    'vgpu_container_soft_limit_ratio',
    'gauge',
    'Fraction of the GPU that the container may use while others leave the GPU idle; absent under a hard share',
    ({ softLimit }) => (softLimit === null ? null : softLimit / 100),
  ),
  slice(
    'vgpu_container_priority',
    'gauge',
    'Priority of the slice: 1 high, -1 low; absent if normal',
    ({ priority = 'normal' }) => PRIORITY_VALUES[priority],
  ),
  slice(
    'vgpu_container_used_ratio',
    'gauge',
    'Fraction of the GPU that the container uses',
    ({ usedPercent }) => usedPercent / 100,
  ),
  slice(
    'vgpu_container_memory_requested_bytes',
    'gauge',
    'Memory of the GPU that is allocated to the container; absent if all of it is',
    ({ allocatedMemoryBytes }) => allocatedMemoryBytes,
  ),
  slice(
    'vgpu_container_memory_limit_bytes',
    'gauge',
    'Memory that the container may use now; absent without a limit',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  ),
  slice(
    'vgpu_container_memory_used_bytes',
    'gauge',
    'Memory that the container uses, as the driver counts it',
    ({ usedMemoryBytes }) => usedMemoryBytes,
  ),
  slice(
    'vgpu_container_memory_driver_bytes',
    'gauge',
    'Part of the used memory that the driver itself needs',
    ({ driverMemoryBytes }) => driverMemoryBytes,
  ),
  slice(
    'vgpu_container_host_backed_memory_limit_bytes',
    'gauge',
    'Host-backed memory that the container may hold; absent if it may hold none',
    ({ hostBackedLimitBytes: bytes }) => (bytes === 0 ? null : bytes),
  ),
  slice(
    'vgpu_container_host_backed_memory_bytes',
    'gauge',
    'Host-backed memory that the container holds; absent if it neither holds nor may hold any',
    ({ hostBackedLimitBytes, hostBackedBytes }) =>
      hostBackedLimitBytes === 0 && hostBackedBytes === 0 ? null : hostBackedBytes,
  ),
  slice(
    'vgpu_container_memory_peak_bytes',
    'gauge',
    'Highest memory use since the container started, as its control library counted it',
    ({ peakMemoryBytes }) => peakMemoryBytes,
  ),
  slice('vgpu_container_processes', 'gauge', 'Processes of the container on the GPU', ({ pids }) => pids.length),
  {
    name: 'vgpu_container_idle_seconds',
    type: 'gauge',
    help: 'Time since the container used the GPU last, or since it was allocated if it never did',
    labels: LABELS,
    *read({ snapshot }) {
      for (const allocation of snapshot.allocations) {
        if (allocation.phase !== 'started') continue;
        for (const one of allocation.slices) {
          const labels = labelsOf(allocation, one);
          const sinceMs = one.lastUsedMs ?? allocation.allocatedAtMs;
          if (labels !== null) yield { labels, value: Math.max(0, Math.round((snapshot.atMs - sinceMs) / 1000)) };
        }
      }
    },
  },
  counter(
    'vgpu_container_gpu_seconds_total',
    'GPU time that the launches of the container were charged',
    ({ chargedSeconds }) => chargedSeconds,
  ),
  counter(
    'vgpu_container_throttled_seconds_total',
    "Throttled time of the container's launches, summed over threads",
    ({ throttledSeconds }) => throttledSeconds,
  ),
  counter('vgpu_container_launches_total', 'Kernel launches', ({ launches }) => launches),
  counter('vgpu_container_delayed_launches_total', 'Throttled launches', ({ waits }) => waits),
  counter(
    'vgpu_container_memory_denied_bytes_total',
    'Memory that was refused to the container',
    ({ deniedBytes }) => deniedBytes,
  ),
  {
    name: 'vgpu_container_memory_denials_total',
    type: 'counter',
    help: 'Calls that were refused memory, by kind of call; absent for kinds without refusals',
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
    'Wanted minus received share in the last seconds, as a fraction of the GPU; absent if the container was throttled less than 80 % of the time',
    ({ controlError }) => controlError,
  ),
  slice(
    'vgpu_container_charge_correction_ratio',
    'gauge',
    'Correction: the factor on the charges of launches; not 1 if the driver reports other times than were charged',
    ({ correction }) => correction,
  ),
  slice(
    'vgpu_container_time_drift_ratio',
    'gauge',
    'GPU time that the driver reports minus charged time, in the last seconds, as a fraction of the GPU; absent if the driver reports none',
    ({ timeDrift }) => timeDrift,
  ),
  slice(
    'vgpu_container_memory_drift_bytes',
    'gauge',
    'Memory that the driver counts minus memory that the container accounts for; absent if the driver does not count it',
    ({ memoryDriftBytes }) => memoryDriftBytes,
  ),
  containerCounter(
    'vgpu_container_refused_connections_total',
    "Connections to the container's socket that were closed: too many, too slow, or with an unknown protocol",
    ({ refusedConnections }) => refusedConnections,
  ),
  containerCounter(
    'vgpu_container_socket_floods_total',
    "How often the container's socket was closed temporarily because of too many connections",
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
  suspension(
    'vgpu_container_suspended',
    '1 for containers that are suspended, by who wanted that: operator, pod, idle or turn; others are absent',
    ({ step }) => (step === 'suspended' ? 1 : null),
  ),
  suspension(
    'vgpu_container_suspended_bytes',
    'Memory that a suspended container had on the GPU, and has on the host; absent for others',
    ({ hostBytes }) => hostBytes,
  ),
  suspension(
    'vgpu_container_suspended_wait_seconds',
    'Time since a call of a suspended container asked for its GPU; absent if none did',
    ({ wantsSinceMs }, atMs) => (wantsSinceMs === null ? null : Math.max(0, (atMs - wantsSinceMs) / 1000)),
  ),
  {
    name: 'vgpu_container_findings',
    type: 'gauge',
    help: 'Present audit findings about the container, by code; absent without findings',
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
