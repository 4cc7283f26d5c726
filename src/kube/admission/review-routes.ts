import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LimitedLogTarget } from '../../host/limited-log.js';
import { json, plain, RefusedRequest, type Answer } from '../../http/answer.js';
import type { HttpRequest, Route } from '../../http/listener.js';
import { KubeError } from '../failure.js';
import type { ReviewCallers } from './review-callers.js';
import { hasMoreFields, isDeletion, MOST_FIELDS, uidOfText } from './review-size.js';
import { readReview, reviewAnswer, type Review, type AdmissionResponse } from './review.js';

export interface ReviewRoutesOptions {
  /** Reviews by path, such as `/workloads`. */
  readonly reviews: Readonly<Record<string, (review: Review) => Promise<AdmissionResponse>>>;
  /** Why the service cannot decide yet; null once it can. */
  readonly notReady: () => string | null;
  /** Called after each decision with path, response and duration in seconds. */
  readonly decided: (path: string, response: AdmissionResponse, seconds: number) => void;
  readonly callers: ReviewCallers;
  readonly log: LimitedLogTarget;
}

/** Routes of the admission webhooks, by request path; null for other paths. */
export function reviewRoutes(options: ReviewRoutesOptions): (path: string) => Route | null {
  const routes = new Map(
    Object.entries(options.reviews).map(([path, decide]): [string, Route] => [
      path,
      // API servers have no token: the callers of reviews are checked by their path or certificate.
      { method: 'POST', isOpen: true, answer: (request) => review(path, decide, request, options) },
    ]),
  );
  return (path) => routes.get(options.callers.reviewPath(path) ?? '') ?? null;
}

/** Characters from which a review is large: parsing it takes a millisecond or more. */
const LARGE_REVIEW = 128 << 10;
const TOO_MANY_FIELDS = `the object and its former state have more than ${MOST_FIELDS} fields and list items, which no workload needs; make it smaller`;

async function review(
  path: string,
  decide: (review: Review) => Promise<AdmissionResponse>,
  request: HttpRequest,
  { notReady, decided, callers, log }: ReviewRoutesOptions,
): Promise<Answer> {
  const started = performance.now();
  // Checked before the body is read.
  if (!callers.isAccepted(request))
    return plain(403, 'only an API server with an accepted client certificate may request reviews');
  const body = await request.body();
  const waiting = notReady();
  if (waiting !== null) return plain(503, waiting);
  if (body.length > LARGE_REVIEW && hasMoreFields(body) && !isDeletion(body)) {
    const refusal = { allowed: false, code: 413, reason: 'RequestEntityTooLarge', message: TOO_MANY_FIELDS } as const;
    decided(path, refusal, (performance.now() - started) / 1000);
    const uid = uidOfText(body);
    return uid === null ? plain(413, TOO_MANY_FIELDS) : json(reviewAnswer(uid, refusal));
  }
  const read = readReview(body);
  if (!read.ok) return plain(400, read.reason);
  // Parsing a large review takes a turn of its own.
  if (body.length > LARGE_REVIEW) await nextTurn();
  const response = await decisionOf(decide, read.review, log);
  decided(path, response, (performance.now() - started) / 1000);
  return json(reviewAnswer(read.review.uid, response));
}

/** Decides a review. If the API server fails, the review is refused: no object is admitted without a decision. */
async function decisionOf(
  decide: (review: Review) => Promise<AdmissionResponse>,
  review: Review,
  log: LimitedLogTarget,
): Promise<AdmissionResponse> {
  try {
    return await decide(review);
  } catch (error) {
    if (!(error instanceof KubeError)) {
      // Logged here without the request's path, which may be a secret.
      log.error({ err: error, resource: review.resource }, 'an admission review failed');
      throw new RefusedRequest(500, 'internal error');
    }
    log.warn({ err: error, resource: review.resource, name: review.name }, 'deciding an admission review failed');
    return {
      allowed: false,
      code: 503,
      reason: 'ServiceUnavailable',
      message: `reading the API server failed; try again: ${error.message}`,
    };
  }
}
