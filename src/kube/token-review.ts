import type { Clock } from '../host/clock.js';
import { TokenAccess, type AccessDecision } from '../http/token-access.js';
import type { KubeApi } from './client.js';
import { list, record } from './json.js';
import { mayUser, reasonOf, userOfToken } from './user-review.js';

/**
 * The audience of tokens that only the agents accept. Through the proxy of the API server, a node sees the token of its
 * reader; a token for this audience gives no access to other servers.
 */
export const AGENT_AUDIENCE = 'gpu-manager';

/**
 * Asks the API server for the token's user (TokenReview), and whether that user may get the path (SubjectAccessReview).
 * The token must be for the API server or for {@link AGENT_AUDIENCE}. Never rejects.
 */
export async function reviewToken(api: KubeApi, token: string, path: string): Promise<AccessDecision> {
  const audience = audiencesOf(token).includes(AGENT_AUDIENCE) ? AGENT_AUDIENCE : null;
  const answer = await userOfToken(api, token, audience);
  if (answer.kind !== 'user') return answer;
  const access = await mayUser(api, answer.user, { nonResourceAttributes: { path, verb: 'get' } });
  if (!access.ok) return { kind: 'unavailable', reason: reasonOf(access) };
  return access.allowed ? { kind: 'allowed' } : { kind: 'forbidden', user: answer.user.name };
}

/** Admits readers whose token may get a path, by the review of the API server; null: everybody. */
export function tokenReaders(isReviewed: boolean, api: KubeApi, clock: Clock): TokenAccess | null {
  return isReviewed ? new TokenAccess((token, path) => reviewToken(api, token, path), clock) : null;
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
