import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import { Listeners } from '../../host/listeners.js';
import { Rounds } from '../../host/rounds.js';
import type { KubeApi } from '../client.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { ReviewCallers } from './review-callers.js';
import { sharedSecret } from './shared-secret.js';

export interface SecretPathsOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** Name of the Secret that all replicas share. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: StructuredLog;
  /** How long a path is used before it is replaced; Infinity: another program replaces it. */
  readonly rotateMs?: number;
  /** Accept the previous path until there is a third: whoever writes the webhook configuration may be late. */
  readonly keepsPrevious?: boolean;
  /** How often the Secret is read. */
  readonly everyMs?: number;
}

interface SecretPath {
  /** First segment of the path: 256 random bits in hexadecimal. */
  readonly token: string;
  /** When the path was created, milliseconds. */
  readonly since: number;
}

const DAY_MS = 86_400_000;
const EVERY_MS = 60_000;
/** A new path is announced after this many reads of the Secret, when every replica has it. */
const ROUNDS_UNTIL_ANNOUNCED = 3;
/** The previous path is accepted for this many further reads, for requests in flight and slow API servers. */
const ROUNDS_UNTIL_EXPIRED = 10;
/** Minimum interval of reads caused by requests with an unknown path. */
const MIN_READ_INTERVAL_MS = 1_000;
const KEY = 'paths';

/**
 * Accepts callers that know a secret path: API servers read it from the webhook configuration, which only
 * administrators can read. The replicas share the path in a Secret and replace it every day. All steps follow the times
 * in the Secret, so that replicas need no other coordination: a new path is accepted once it is read, announced some
 * reads later, and the previous one expires some reads after that.
 */
export class SecretPaths implements ReviewCallers {
  readonly #options: Required<SecretPathsOptions>;
  readonly #rounds: Rounds;
  readonly #listeners = new Listeners<void, Promise<void>>();
  #paths: readonly SecretPath[] = [];
  #readAt = -Infinity;
  #announced = '';
  #reading: Promise<void> | null = null;

  constructor(options: SecretPathsOptions) {
    this.#options = { rotateMs: DAY_MS, everyMs: EVERY_MS, keepsPrevious: false, ...options };
    this.#rounds = new Rounds(options.clock, this.#options.everyMs, () => this.#refresh());
  }

  /** Rejects if the Secret can be neither read nor created. */
  async start(): Promise<void> {
    await this.#read();
    this.#announced = this.prefix;
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Replaces the path if it is old enough, and nothing else; rejects if the Secret cannot be written. */
  replaceOld(): Promise<void> {
    return this.#read();
  }

  /** The prefix that the webhook configuration should have now. */
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
    // Another replica may have created the path since the last read.
    if (this.#options.clock.now() - this.#readAt >= MIN_READ_INTERVAL_MS) void this.#read().catch(() => undefined);
    return null;
  }

  isAccepted(): boolean {
    return true;
  }

  #accepts(token: string): boolean {
    const now = this.#options.clock.now();
    const keptMs = (ROUNDS_UNTIL_ANNOUNCED + ROUNDS_UNTIL_EXPIRED) * this.#options.everyMs;
    return this.#paths.some((path, index) => {
      const next = this.#paths[index + 1];
      const isValid = next === undefined || this.#options.keepsPrevious || now < next.since + keptMs;
      return isValid && isSame(path.token, token);
    });
  }

  async #refresh(): Promise<void> {
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

  /** Concurrent callers share one read. */
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
        const created = { token: randomBytes(32).toString('hex'), since: clock.now() };
        return { ...present, [KEY]: JSON.stringify([...paths.slice(-1), created]) };
      },
    });
    this.#paths = pathsOf(data[KEY]);
  }
}

/** Reads the paths of the Secret; empty if the text is damaged, so that a new path is created. */
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

/** Compares in constant time. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
