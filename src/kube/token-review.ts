import type { AccessDecision } from '../http/token-access.js';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from './api-path.js';
import type { KubeClient } from './client.js';
import type { KubeFailure } from './failure.js';
import { list, record } from './json.js';

interface UserInfo {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: object;
}

interface TokenStatus {
  readonly authenticated?: boolean;
  readonly user?: UserInfo;
  readonly audiences?: readonly string[];
}

/**
 * The audience of tokens that are of use only at the agents. Through the proxy of the API server, a node sees the token
 * of its reader, and one for this audience opens nothing else.
 */
export const AGENT_AUDIENCE = 'gpu-manager';

/**
 * Asks the API server for the token's user (TokenReview), and whether that user may get the path (SubjectAccessReview).
 * The token must be for the API server or for {@link AGENT_AUDIENCE}. Never rejects.
 */
export async function reviewToken(client: KubeClient, token: string, path: string): Promise<AccessDecision> {
  const isForAgents = audiencesOf(token).includes(AGENT_AUDIENCE);
  const review = await client.request({
    method: 'POST',
    path: TOKEN_REVIEWS,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: isForAgents ? { token, audiences: [AGENT_AUDIENCE] } : { token },
    },
  });
  if (!review.ok) return unavailable(review);
  const { authenticated, user, audiences } = statusOf<TokenStatus>(review.body);
  if (authenticated !== true || user === undefined) return { kind: 'unknown' };
  // An authenticator that knows no audiences confirms none.
  if (isForAgents && audiences?.includes(AGENT_AUDIENCE) !== true) return { kind: 'unknown' };
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

/** The audiences that a JSON web token claims; nothing is verified here. */
function audiencesOf(token: string): readonly unknown[] {
  try {
    const { aud } = record(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')));
    return typeof aud === 'string' ? [aud] : list(aud);
  } catch {
    return [];
  }
}

function statusOf<T extends object>(body: unknown): Partial<T> {
  return (body as { readonly status?: Partial<T> } | null)?.status ?? {};
}

function unavailable(failure: KubeFailure): AccessDecision {
  return { kind: 'unavailable', reason: `${failure.code}: ${failure.message}` };
}
