import { containerAnswers, type ContainerAnswer } from './answers.js';
import type { Sample } from '../../http/metrics.js';
import type { NodeMetric, Scrape } from './node-metric.js';

const LABELS = ['pod_name', 'namespace', 'node', 'container_name'] as const;

/**
 * A gauge of the original (untyped if the original calls it a total, because promtool would object). Label `total` has
 * the sum, and for used amounts a fourth label names each GPU.
 */
function original(
  name: string,
  help: string,
  label: string,
  total: (container: ContainerAnswer) => number,
  device?: (used: ContainerAnswer['devices'][number]) => number,
): NodeMetric {
  return {
    name,
    type: name.endsWith('_total') ? 'untyped' : 'gauge',
    help,
    labels: [...LABELS, label],
    *read({ snapshot }: Scrape): Iterable<Sample> {
      for (const container of containerAnswers(snapshot)) {
        const { owner, devices } = container;
        const labels = {
          pod_name: owner.pod,
          namespace: owner.namespace,
          node: snapshot.node,
          container_name: owner.container,
        };
        for (const used of device === undefined ? [] : devices)
          yield { labels: { ...labels, [label]: `gpu${used.index}` }, value: Math.fround(device?.(used) ?? 0) };
        yield { labels: { ...labels, [label]: 'total' }, value: Math.fround(total(container)) };
      }
    },
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The metrics of tkestack gpu-manager, with its names, labels and values: 32-bit floats, memory in MiB. */
export const ORIGINAL_METRICS: readonly NodeMetric[] = [
  original(
    'container_gpu_utilization',
    'GPU utilization of the container in percent of a GPU',
    'gpu',
    ({ devices }) => sum(devices.map((used) => used.usedPercent)),
    (used) => used.usedPercent,
  ),
  original(
    'container_gpu_memory_total',
    'GPU memory that the container uses, in MiB',
    'gpu_memory',
    ({ devices }) => sum(devices.map((used) => used.usedMemory)),
    (used) => used.usedMemory,
  ),
  original(
    'container_request_gpu_utilization',
    'Fraction of a GPU that the container requested',
    'req_of_gpu',
    ({ requestedGpu }) => requestedGpu,
  ),
  original(
    'container_request_gpu_memory',
    'GPU memory that the container requested, in MiB',
    'req_of_gpu_memory',
    ({ requestedMemory }) => requestedMemory,
  ),
];
