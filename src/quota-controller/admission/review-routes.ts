import { json, plain, type Answer } from '../../http/answer.js';
import type { HttpRequest, Route } from '../../http/listener.js';
import { KubeError } from '../../kube/failure.js';
import type { QuotaLog } from '../log.js';
import { readReview, reviewAnswer, type Review, type AdmissionResponse } from './review.js';

export interface ReviewRoutesOptions {
  /** By path: `/workloads`. */
  readonly reviews: Readonly<Record<string, (review: Review) => Promise<AdmissionResponse>>>;
  /** Why nothing can be decided yet; null once it can. */
  readonly notReady: () => string | null;
  /** Told of each decision: path, response, seconds. */
  readonly decided: (path: string, response: AdmissionResponse, seconds: number) => void;
  readonly log: QuotaLog;
}

/** What the API server calls: validating webhooks, by path. */
export function reviewRoutes(options: ReviewRoutesOptions): Readonly<Record<string, Route>> {
  return Object.fromEntries(
    Object.entries(options.reviews).map(([path, decide]): [string, Route] => [
      path,
      { method: 'POST', answer: (request) => review(path, decide, request, options) },
    ]),
  );
}

async function review(
  path: string,
  decide: (review: Review) => Promise<AdmissionResponse>,
  request: HttpRequest,
  { notReady, decided, log }: ReviewRoutesOptions,
): Promise<Answer> {
  const started = performance.now();
  const body = await request.body();
  const waiting = notReady();
  if (waiting !== null) return plain(503, waiting);
  const read = readReview(body);
  if (!read.ok) return plain(400, read.reason);
  const response = await decisionOf(decide, read.review, log);
  decided(path, response, (performance.now() - started) / 1000);
  return json(reviewAnswer(read.review.uid, response));
}

/** What cannot be decided because the API server failed is refused for now: nothing is let through unseen. */
async function decisionOf(
  decide: (review: Review) => Promise<AdmissionResponse>,
  review: Review,
  log: QuotaLog,
): Promise<AdmissionResponse> {
  try {
    return await decide(review);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    log.warn({ err: error, resource: review.resource, name: review.name }, 'deciding an admission review failed');
    return {
      allowed: false,
      code: 503,
      reason: 'ServiceUnavailable',
      message: `the quota could not be looked up, try again: ${error.message}`,
    };
  }
}
