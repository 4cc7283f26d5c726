import { createHash } from 'node:crypto';
import type { Clock } from '../host/clock.js';

/** What the cluster says of a bearer token that asks to read a path. */
export type AccessDecision =
  | { readonly kind: 'allowed' }
  /** Nobody's token. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'forbidden'; readonly user: string }
  /** The cluster cannot be asked now. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** Asks the cluster. Never rejects. */
export type TokenReviewer = (token: string, path: string) => Promise<AccessDecision>;

/**
 * A token that was taken away is believed for so long at most, and one that is not good is asked about again after so
 * long.
 */
const GOOD_MS = 60_000;
const BAD_MS = 5_000;
const MOST_REMEMBERED = 1_024;

/**
 * Who may read. Answers of the cluster are remembered for a while, so that a scrape every few seconds costs it nothing.
 */
export class TokenAccess {
  readonly #review: TokenReviewer;
  readonly #clock: Clock;
  readonly #known = new Map<string, { readonly decision: AccessDecision; readonly untilMs: number }>();

  constructor(review: TokenReviewer, clock: Clock) {
    this.#review = review;
    this.#clock = clock;
  }

  /** `authorization`: the header of the request. */
  async check(authorization: string | undefined, path: string): Promise<AccessDecision> {
    const token = /^Bearer ([\w.~+/=-]+)$/iu.exec(authorization ?? '')?.[1];
    if (token === undefined) return { kind: 'unknown' };
    const key = createHash('sha256').update(`${token}\n${path}`).digest('base64');
    const now = this.#clock.now();
    const known = this.#known.get(key);
    if (known !== undefined && now < known.untilMs) return known.decision;
    const decision = await this.#review(token, path);
    if (decision.kind === 'unavailable') return decision;
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    this.#known.set(key, { decision, untilMs: now + (decision.kind === 'allowed' ? GOOD_MS : BAD_MS) });
    return decision;
  }
}
