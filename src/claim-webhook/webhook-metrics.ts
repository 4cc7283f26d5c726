import { counted, counter, histogram, Metrics } from '../http/metrics.js';
import { reviewHistogram } from '../kube/admission/review-histogram.js';
import type { AdmissionResponse } from '../kube/admission/review.js';

const REVIEWS = reviewHistogram(
  'gpu_dra_review_seconds',
  'Duration of admission reviews of claims and of pods to convert',
);

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
