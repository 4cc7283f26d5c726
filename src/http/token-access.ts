import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../host/clock.js';

/** The cluster's decision about a bearer token and a path. */
export type AccessDecision =
  | { readonly kind: 'allowed' }
  /** The cluster does not know the token. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'forbidden'; readonly user: string }
  /** The cluster does not answer now. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** Queries the cluster; never rejects. */
export type TokenReviewer = (token: string, path: string) => Promise<AccessDecision>;

/**
 * A header for the token alone. The API server removes `Authorization` from requests that it forwards to a pod, so a
 * reader behind its proxy gives the token here.
 */
export const FORWARDED_TOKEN_HEADER = 'x-gpu-manager-token';

/** The header `authorization` of a request, also of one that a proxy of the API server forwards. */
export function authorizationOf(headers: IncomingHttpHeaders): string | undefined {
  const forwarded = headers[FORWARDED_TOKEN_HEADER];
  return typeof forwarded === 'string' ? `Bearer ${forwarded}` : headers.authorization;
}

/** How long an accepted token stays accepted after its revocation at most, and how long a refused one stays refused. */
const GOOD_MS = 60_000;
const BAD_MS = 5_000;
/** Limit of cached tokens for each kind: refused tokens never displace accepted ones. */
const MAX_REMEMBERED = 1_024;
/** Limit of concurrent reviews of unknown tokens, so that callers cannot flood the API server. */
const MAX_REVIEWS = 16;

interface Remembered {
  readonly decision: AccessDecision;
  readonly untilMs: number;
}

/** Authorises readers by token. Decisions are cached for a while, so that frequent scrapes do not load the cluster. */
export class TokenAccess {
  readonly #review: TokenReviewer;
  readonly #clock: Clock;
  readonly #good = new Map<string, Remembered>();
  readonly #bad = new Map<string, Remembered>();
  #reviews = 0;

  constructor(review: TokenReviewer, clock: Clock) {
    this.#review = review;
    this.#clock = clock;
  }

  /** `authorization`: the request header. */
  async check(authorization: string | undefined, path: string): Promise<AccessDecision> {
    const token = /^Bearer ([\w.~+/=-]+)$/iu.exec(authorization ?? '')?.[1];
    if (token === undefined) return { kind: 'unknown' };
    const key = createHash('sha256').update(`${token}\n${path}`).digest('base64');
    const known = this.#good.get(key) ?? this.#bad.get(key);
    if (known !== undefined && this.#clock.now() < known.untilMs) return known.decision;
    if (!this.#good.has(key) && this.#reviews >= MAX_REVIEWS)
      return { kind: 'unavailable', reason: 'too many tokens are reviewed at once' };
    this.#reviews += 1;
    const decision = await this.#review(token, path).finally(() => (this.#reviews -= 1));
    if (decision.kind !== 'unavailable') this.#remember(key, decision);
    return decision;
  }

  #remember(key: string, decision: AccessDecision): void {
    this.#good.delete(key);
    this.#bad.delete(key);
    const [kept, forMs] = decision.kind === 'allowed' ? [this.#good, GOOD_MS] : [this.#bad, BAD_MS];
    if (kept.size >= MAX_REMEMBERED) for (const oldest of kept.keys()) if (kept.delete(oldest)) break;
    kept.set(key, { decision, untilMs: this.#clock.now() + forMs });
  }
}
