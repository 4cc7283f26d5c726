import type { AccessDecision } from '../http/token-access.js';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from './api-path.js';
import type { KubeClient } from './client.js';
import type { KubeFailure } from './failure.js';

interface UserInfo {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: object;
}

/**
 * Asks the API server for the token's user (TokenReview), and whether that user may get the path (SubjectAccessReview).
 * Never rejects.
 */
export async function reviewToken(client: KubeClient, token: string, path: string): Promise<AccessDecision> {
  const review = await client.request({
    method: 'POST',
    path: TOKEN_REVIEWS,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
  });
  if (!review.ok) return unavailable(review);
  const { authenticated, user } = statusOf<{ authenticated?: boolean; user?: UserInfo }>(review.body);
  if (authenticated !== true || user === undefined) return { kind: 'unknown' };
  const name = user.username ?? '';
  const spec = {
    user: name,
    uid: user.uid,
    groups: user.groups,
    extra: user.extra,
    nonResourceAttributes: { path, verb: 'get' },
  };
  const access = await client.request({
    method: 'POST',
    path: SUBJECT_ACCESS_REVIEWS,
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec },
  });
  if (!access.ok) return unavailable(access);
  return statusOf<{ allowed?: boolean }>(access.body).allowed === true
    ? { kind: 'allowed' }
    : { kind: 'forbidden', user: name };
}

function statusOf<T extends object>(body: unknown): Partial<T> {
  return (body as { readonly status?: Partial<T> } | null)?.status ?? {};
}

function unavailable(failure: KubeFailure): AccessDecision {
  return { kind: 'unavailable', reason: `${failure.code}: ${failure.message}` };
}
