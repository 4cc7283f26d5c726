import type { HistogramFamily } from '../../http/metrics.js';

/** The family of the durations of admission reviews by path and answer. An API server waits 10 s by default. */
export function reviewHistogram(name: string, help: string): HistogramFamily<'path' | 'allowed'> {
  return {
    name,
    type: 'histogram',
    help,
    labels: ['path', 'allowed'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  };
}
