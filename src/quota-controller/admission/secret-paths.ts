import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';
import type { KubeApi } from '../../kube/client.js';
import type { QuotaLog } from '../log.js';
import type { ReviewCallers } from './review-callers.js';
import { sharedSecret } from './shared-secret.js';

export interface SecretPathsOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** Of the Secret that all replicas share. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: QuotaLog;
  /** How long a path is used. */
  readonly rotateMs?: number;
  /** How often the Secret is read. */
  readonly everyMs?: number;
}

interface SecretPath {
  /** The first part of the path: 256 random bits, as hexadecimal digits. */
  readonly token: string;
  /** When it was made. */
  readonly since: number;
}

const DAY_MS = 86_400_000;
const EVERY_MS = 60_000;
/** A path is announced when every replica has read the Secret a few times since. */
const ROUNDS_UNTIL_ANNOUNCED = 3;
/** A path goes so many rounds after the one that follows it was announced: requests under way, slow API servers. */
const ROUNDS_UNTIL_GONE = 10;
/** A caller with an unknown path makes a replica read the Secret, no more often than this. */
const LEAST_READ_MS = 1_000;
/** Key of the Secret. */
const KEY = 'paths';

/**
 * Lets those ask who know the path: the API server, from the webhook configuration, which only administrators read.
 * The path is in a Secret that the replicas share and is replaced every day. Everything goes by the times in the
 * Secret, so that replicas need not talk: a new path is accepted as soon as it is read, announced some rounds later,
 * and the one before goes some rounds after that.
 */
export class SecretPaths implements ReviewCallers {
  readonly #options: Required<SecretPathsOptions>;
  readonly #rounds: Rounds;
  readonly #listeners = new Set<() => Promise<void>>();
  #paths: readonly SecretPath[] = [];
  #readAt = -Infinity;
  #announced = '';
  #reading: Promise<void> | null = null;

  constructor(options: SecretPathsOptions) {
    this.#options = { rotateMs: DAY_MS, everyMs: EVERY_MS, ...options };
    this.#rounds = new Rounds(options.clock, this.#options.everyMs, () => this.#look());
  }

  /** Rejects where the Secret can be neither read nor made. */
  async start(): Promise<void> {
    await this.#read();
    this.#announced = this.prefix;
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** As the webhook configuration is to have it now. */
  get prefix(): string {
    const now = this.#options.clock.now();
    const waitMs = ROUNDS_UNTIL_ANNOUNCED * this.#options.everyMs;
    const path = this.#paths.findLast(({ since }) => since + waitMs <= now) ?? this.#paths[0];
    return path === undefined ? '' : `/${path.token}`;
  }

  onChange(announce: () => Promise<void>): void {
    this.#listeners.add(announce);
  }

  reviewPath(path: string): string | null {
    const [, token = '', ...rest] = path.split('/');
    if (token.length !== 64) return null;
    if (this.#accepts(token)) return `/${rest.join('/')}`;
    // Made by another replica a moment ago, perhaps.
    if (this.#options.clock.now() - this.#readAt >= LEAST_READ_MS) void this.#read().catch(() => undefined);
    return null;
  }

  mayAsk(): boolean {
    return true;
  }

  #accepts(token: string): boolean {
    const now = this.#options.clock.now();
    const keptMs = (ROUNDS_UNTIL_ANNOUNCED + ROUNDS_UNTIL_GONE) * this.#options.everyMs;
    return this.#paths.some((path, index) => {
      const next = this.#paths[index + 1];
      return (next === undefined || now < next.since + keptMs) && isSame(path.token, token);
    });
  }

  async #look(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#read();
      if (this.prefix === this.#announced) return;
      const prefix = this.prefix;
      for (const announce of this.#listeners) await announce();
      this.#announced = prefix;
      log.info({}, 'the path of the webhooks was replaced');
    } catch (error) {
      log.warn({ err: error }, 'replacing the path of the webhooks failed; retrying');
    }
  }

  /** One read at a time: callers that come meanwhile wait for the same. */
  #read(): Promise<void> {
    this.#reading ??= this.#readSecret().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #readSecret(): Promise<void> {
    const { api, namespace, name, clock, rotateMs } = this.#options;
    this.#readAt = clock.now();
    const data = await sharedSecret({
      api,
      namespace,
      name,
      type: 'Opaque',
      next: async (present) => {
        const paths = pathsOf(present[KEY]);
        const last = paths.at(-1);
        if (last !== undefined && clock.now() - last.since < rotateMs) return null;
        const made = { token: randomBytes(32).toString('hex'), since: clock.now() };
        return { ...present, [KEY]: JSON.stringify([...paths.slice(-1), made]) };
      },
    });
    this.#paths = pathsOf(data[KEY]);
  }
}

/** What the Secret holds; nothing where it was damaged, so that it is made anew. */
function pathsOf(text = '[]'): readonly SecretPath[] {
  try {
    const read = JSON.parse(text) as readonly Partial<SecretPath>[];
    return read.flatMap(({ token, since }) =>
      typeof token === 'string' && /^[0-9a-f]{64}$/u.test(token) && typeof since === 'number' ? [{ token, since }] : [],
    );
  } catch {
    return [];
  }
}

/** Takes as long for every wrong guess. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
