import { byLabel, only } from '../../http/metrics.js';
import type { NodeMetric } from './node-metric.js';

/** Metrics of the agent, of the node as a whole, and of allocations. */
export const NODE_METRICS: readonly NodeMetric[] = [
  {
    name: 'vgpu_build_info',
    type: 'gauge',
    help: 'Always 1; its labels say what runs, and on which node',
    labels: ['version', 'driver_version', 'node'],
    read: ({ snapshot: { version, driverVersion, node } }) => [
      { labels: { version, driver_version: driverVersion ?? '', node }, value: 1 },
    ],
  },
  {
    name: 'vgpu_ready',
    type: 'gauge',
    help: '1 while the agent can serve pods',
    labels: [],
    read: ({ snapshot }) => only(snapshot.notReady.length === 0 ? 1 : 0),
  },
  {
    name: 'vgpu_driver_up',
    type: 'gauge',
    help: '1 while the GPU driver answers',
    labels: [],
    read: ({ snapshot }) => only(snapshot.driverOutage === null ? 1 : 0),
  },
  {
    name: 'vgpu_gpus',
    type: 'gauge',
    help: 'GPUs of the node that can be shared',
    labels: [],
    read: ({ snapshot }) => only(snapshot.gpus.length),
  },
  {
    name: 'vgpu_allocations',
    type: 'gauge',
    help: 'Allocations, by phase: allocated (the container has not started) or started',
    labels: ['phase'],
    read({ snapshot }) {
      const started = snapshot.allocations.filter(({ phase }) => phase === 'started').length;
      return byLabel('phase', [
        ['allocated', snapshot.allocations.length - started],
        ['started', started],
      ]);
    },
  },
  {
    name: 'vgpu_allocation_info',
    type: 'gauge',
    help: 'Always 1; its labels connect an allocation id, as in logs and directories, with its container and its quota group',
    labels: ['allocation', 'namespace', 'pod', 'container', 'quota_group'],
    *read({ snapshot }) {
      for (const { id, owners, quotaGroup } of snapshot.allocations) {
        const owner = owners.at(-1);
        yield {
          labels: {
            allocation: id,
            namespace: owner?.namespace ?? '',
            pod: owner?.pod ?? '',
            container: owner?.container ?? '',
            quota_group: quotaGroup ?? '',
          },
          value: 1,
        };
      }
    },
  },
  {
    name: 'vgpu_allocation_created_timestamp_seconds',
    type: 'gauge',
    help: 'Time of the allocation, in seconds since 1970',
    labels: ['allocation'],
    *read({ snapshot }) {
      for (const { id, allocatedAtMs } of snapshot.allocations)
        yield { labels: { allocation: id }, value: allocatedAtMs / 1000 };
    },
  },
  {
    name: 'vgpu_refusals_total',
    type: 'counter',
    help: 'Requests of the kubelet that were refused, by code',
    labels: ['code'],
    read: ({ counts }) => byLabel('code', counts.refusals),
  },
  {
    name: 'vgpu_errors_total',
    type: 'counter',
    help: 'Errors in the agent and around it, by cause',
    labels: ['cause'],
    read: ({ counts }) => byLabel('cause', counts.errors),
  },
  {
    name: 'vgpu_findings_total',
    type: 'counter',
    help: 'Findings of the audit that were raised, by code',
    labels: ['code'],
    read: ({ counts }) => byLabel('code', counts.findings),
  },
  {
    name: 'vgpu_evictions_total',
    type: 'counter',
    help: 'Evictions that were requested for a finding',
    labels: [],
    read: ({ counts }) => only(counts.evictions),
  },
  {
    name: 'vgpu_nri_connected',
    type: 'gauge',
    help: 'With --nri: 1 while the container runtime asks the agent about containers',
    labels: [],
    read: ({ counts }) => (counts.nri === null ? [] : only(counts.nri.connected ? 1 : 0)),
  },
  {
    name: 'vgpu_nri_corrected_containers_total',
    type: 'counter',
    help: 'With --nri: containers that lacked parts of their slice and were corrected before they were created',
    labels: [],
    read: ({ counts }) => (counts.nri === null ? [] : only(counts.nri.corrected)),
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'Memory of the agent',
    labels: [],
    read: () => only(process.memoryUsage.rss()),
  },
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the agent, user and system',
    labels: [],
    read() {
      const { user, system } = process.cpuUsage();
      return only((user + system) / 1e6);
    },
  },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'Start time of the agent, in seconds since 1970',
    labels: [],
    read: () => only(performance.timeOrigin / 1000),
  },
];
