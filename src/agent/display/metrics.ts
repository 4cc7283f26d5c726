import { counted, Metrics, readAt } from '../../http/metrics.js';
import type { CallTimes, NodeView } from '../node/index.js';
import { CONTAINER_METRICS } from './container-metrics.js';
import { DRA_METRICS } from './dra-metrics.js';
import { GPU_METRICS } from './gpu-metrics.js';
import type { NodeMetric } from './node-metric.js';
import { NODE_METRICS } from './node-metrics.js';
import { ORIGINAL_METRICS } from './original-metrics.js';

/** Every metric whose value is read from the node at a scrape. */
export const METRICS: readonly NodeMetric[] = [
  ...NODE_METRICS,
  ...DRA_METRICS,
  ...GPU_METRICS,
  ...CONTAINER_METRICS,
  ...ORIGINAL_METRICS,
];

export function nodeMetrics(view: NodeView, times: CallTimes): Metrics {
  return new Metrics(
    readAt(METRICS, () => ({ snapshot: view.snapshot(), counts: view.counts() })),
    counted([times.durations, times.claimDurations]),
  );
}
