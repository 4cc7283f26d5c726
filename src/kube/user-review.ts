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

/** What a user may do with objects of the API server; without a namespace: in all namespaces. */
export interface ResourceAttributes {
  readonly verb: 'get' | 'list';
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

/** Asks the API server whose token it is (TokenReview). Never rejects. */
export async function userOfToken(api: KubeApi, token: string): Promise<UserAnswer> {
  const answer = await api.request({
    method: 'POST',
    path: TOKEN_REVIEWS,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
  });
  if (!answer.ok) return { kind: 'unavailable', reason: reasonOf(answer) };
  const { authenticated, user: found } = record(record(answer.body).status);
  const { username, uid, groups, extra } = record(found);
  if (authenticated !== true || text(username) === '') return { kind: 'unknown' };
  const user = { name: text(username), uid: text(uid), groups: list(groups).map(text), extra: record(extra) };
  return { kind: 'user', user };
}

/** Asks the API server what a user may do (SubjectAccessReview); null if it does not answer now. Never rejects. */
export async function mayUser(
  api: KubeApi,
  { name, uid, groups, extra }: ClusterUser,
  attributes: ResourceAttributes,
): Promise<boolean | null> {
  const answer = await api.request({
    method: 'POST',
    path: SUBJECT_ACCESS_REVIEWS,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: name, uid, groups, extra, resourceAttributes: attributes },
    },
  });
  return answer.ok ? record(record(answer.body).status).allowed === true : null;
}

function reasonOf({ code, message }: KubeFailure): string {
  return `${code}: ${message}`;
}
