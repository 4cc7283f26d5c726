import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from './api-path.js';
import type { KubeApi } from './client.js';
import type { KubeFailure } from './failure.js';
import { list, record, text } from './json.js';

/** A user of the cluster, as its API server names it. */
export interface ClusterUser {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, unknown>>;
}

export type UserAnswer =
  | { readonly kind: 'user'; readonly user: ClusterUser }
  /** The cluster does not know the token. */
  | { readonly kind: 'unknown' }
  /** The cluster does not answer now. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A right of a user to objects of the API server; without a namespace: in all namespaces. */
export interface ResourceAttributes {
  readonly verb: 'get' | 'list';
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

/** A path that a user may read on a server of ours. */
export interface NonResourceAttributes {
  readonly path: string;
  readonly verb: 'get';
}

/** The right to something, by the field of a SubjectAccessReview that names it. */
export type Right =
  { readonly resourceAttributes: ResourceAttributes } | { readonly nonResourceAttributes: NonResourceAttributes };

export type RightAnswer = { readonly ok: true; readonly allowed: boolean } | KubeFailure;

/**
 * Asks the API server for the user of a token (TokenReview). With an audience, the token must be for it, and the API
 * server must confirm that: an authenticator that knows no audiences confirms none. Never rejects.
 */
export async function userOfToken(api: KubeApi, token: string, audience: string | null = null): Promise<UserAnswer> {
  const answer = await api.request({
    method: 'POST',
    path: TOKEN_REVIEWS,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: audience === null ? { token } : { token, audiences: [audience] },
    },
  });
  if (!answer.ok) return { kind: 'unavailable', reason: reasonOf(answer) };
  const { authenticated, user: found, audiences } = record(record(answer.body).status);
  const { username, uid, groups, extra } = record(found);
  if (authenticated !== true || text(username) === '') return { kind: 'unknown' };
  if (audience !== null && !list(audiences).includes(audience)) return { kind: 'unknown' };
  const user = { name: text(username), uid: text(uid), groups: list(groups).map(text), extra: record(extra) };
  return { kind: 'user', user };
}

/** Asks the API server whether a user has a right (SubjectAccessReview). Never rejects. */
export async function mayUser(
  api: KubeApi,
  { name, uid, groups, extra }: ClusterUser,
  right: Right,
): Promise<RightAnswer> {
  const answer = await api.request({
    method: 'POST',
    path: SUBJECT_ACCESS_REVIEWS,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: name, uid, groups, extra, ...right },
    },
  });
  return answer.ok ? { ok: true, allowed: record(record(answer.body).status).allowed === true } : answer;
}

/** A failure as the reason for which an answer is unavailable. */
export function reasonOf({ code, message }: KubeFailure): string {
  return `${code}: ${message}`;
}
