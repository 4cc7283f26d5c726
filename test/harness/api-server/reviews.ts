import { list, record, text } from '../../../src/kube/json.js';

/** What a SubjectAccessReview asks about. */
export interface ReviewedAccess {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Empty: all namespaces. */
  readonly namespace: string;
  /** Empty for resources. */
  readonly path: string;
}

/** Whose token it is, and what that user may do. */
export interface Reviews {
  /** Reviewed token -> user name. */
  readonly tokens: ReadonlyMap<string, string>;
  readonly allows: (user: string, access: ReviewedAccess) => boolean;
}

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const SUBJECT_ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const SELF_SUBJECT_ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/**
 * The answer to a review that `caller` sent; null for another path. Nothing is stored: the answer is the request with a
 * status.
 */
export function reviewed({ tokens, allows }: Reviews, path: string, body: string, caller: string): object | null {
  if (![TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_ACCESS_REVIEWS].includes(path)) return null;
  const review = record(JSON.parse(body));
  const spec = record(review.spec);
  if (path === TOKEN_REVIEWS) {
    const user = tokens.get(text(spec.token));
    const status =
      user === undefined
        ? { authenticated: false, error: 'invalid token' }
        : { authenticated: true, user: { username: user, uid: user, groups: ['system:authenticated'] } };
    return { ...review, status };
  }
  const { verb, group, resource, namespace } = record(spec.resourceAttributes);
  const { path: url } = record(spec.nonResourceAttributes);
  const access = {
    verb: text(verb),
    group: text(group),
    resource: text(resource),
    namespace: text(namespace),
    path: text(url),
  };
  if (path === SELF_SUBJECT_ACCESS_REVIEWS) return { ...review, status: { allowed: allows(caller, access) } };
  const known = list(spec.groups).includes('system:authenticated');
  return { ...review, status: { allowed: known && allows(text(spec.user), access) } };
}
