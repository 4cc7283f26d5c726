import { Gauge, Registry } from 'prom-client';
import type { NodeView } from './view.js';

const MIB = 1024 * 1024;
const CONTAINER_LABELS = ['pod_name', 'namespace', 'node', 'container_name'] as const;

export interface MetricsText {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The metrics of tkestack gpu-manager, under its names and labels, read from the view at each scrape. */
export function nodeMetrics(view: NodeView): MetricsText {
  const registry = new Registry();
  const gauge = (name: string, help: string, label: string) =>
    new Gauge({ name, help, labelNames: [...CONTAINER_LABELS, label], registers: [registry] });
  const utilization = gauge('container_gpu_utilization', 'GPU utilization of the container in percent', 'gpu');
  const memory = gauge('container_gpu_memory_total', 'GPU memory that the container uses, in MiB', 'gpu_memory');
  const requested = gauge('container_request_gpu_utilization', 'Requested fraction of a GPU', 'req_of_gpu');
  const requestedMemory = gauge('container_request_gpu_memory', 'Requested GPU memory in MiB', 'req_of_gpu_memory');

  const refresh = (): void => {
    for (const metric of [utilization, memory, requested, requestedMemory]) metric.reset();
    for (const container of view.containers()) {
      const labels = { pod_name: container.pod, namespace: container.namespace, node: view.nodeName, container_name: container.container };
      let usedPercent = 0;
      let usedMemoryBytes = 0;
      for (const device of container.devices) {
        utilization.set({ ...labels, gpu: `gpu${device.gpuIndex}` }, device.usedPercent);
        memory.set({ ...labels, gpu_memory: `gpu${device.gpuIndex}` }, device.usedMemoryBytes / MIB);
        usedPercent += device.usedPercent;
        usedMemoryBytes += device.usedMemoryBytes;
      }
      utilization.set({ ...labels, gpu: 'total' }, usedPercent);
      memory.set({ ...labels, gpu_memory: 'total' }, usedMemoryBytes / MIB);
      requested.set({ ...labels, req_of_gpu: 'total' }, container.requestedCores / 100);
      requestedMemory.set({ ...labels, req_of_gpu_memory: 'total' }, container.requestedMemoryBytes / MIB);
    }
  };
  return {
    contentType: registry.contentType,
    text: () => {
      refresh();
      return registry.metrics();
    },
  };
}
