import { counted, counter, histogram, Metrics } from '../http/metrics.js';
import type { AdmissionResponse } from '../kube/admission/review.js';

const REVIEWS = {
  name: 'gpu_dra_review_seconds',
  type: 'histogram',
  help: 'Duration of admission reviews of claims and of pods to convert',
  labels: ['path', 'allowed'],
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
} as const;

const CONVERTED = {
  name: 'gpu_dra_converted_pods_total',
  type: 'counter',
  help: 'Pods whose requests for vcuda-core were converted into resource claims',
  labels: [],
} as const;

/** The metrics of `gpu-manager claim-webhook`. */
export class WebhookMetrics {
  readonly #reviews = histogram(REVIEWS);
  readonly #converted = counter(CONVERTED);
  readonly page = new Metrics(counted([this.#reviews, this.#converted]));

  decided(path: string, { allowed, patch }: AdmissionResponse, seconds: number): void {
    this.#reviews.observe({ path, allowed: String(allowed) }, seconds);
    if (patch !== undefined) this.#converted.inc();
  }
}
