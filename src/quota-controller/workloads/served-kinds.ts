import type { Evaluator } from '../../quota/index.js';
import type { KubeApi } from '../../kube/client.js';
import { servedKinds, type ServedKind } from './kinds.js';
import { Listeners } from '../../host/listeners.js';
import type { StructuredLog } from '../../host/structured-log.js';
import type { Clock } from '../../host/clock.js';
import { Rounds } from '../../host/rounds.js';

export interface ServedKindsOptions {
  readonly api: KubeApi;
  /** Returns the kinds to look for in each round. */
  readonly evaluators: () => readonly Evaluator[];
  readonly log: StructuredLog;
  readonly clock: Clock;
  readonly everyMs?: number;
}

/** The kinds of workloads that the API server serves now; custom resources may be added and removed at any time. */
export class ServedKinds {
  readonly #options: ServedKindsOptions;
  readonly #rounds: Rounds;
  readonly #listeners = new Listeners<readonly ServedKind[], Promise<void> | void>();
  #kinds: readonly ServedKind[] = [];
  /** Paths of kinds that cannot be listed, whose warning was logged. */
  readonly #hidden = new Set<string>();
  #discovery: Promise<void> = Promise.resolve();

  private constructor(options: ServedKindsOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, options.everyMs ?? 30_000, () => this.rediscover());
  }

  /** Discovers the kinds; rejects with a KubeError if the API server fails. */
  static async read(options: ServedKindsOptions): Promise<ServedKinds> {
    const read = new ServedKinds(options);
    read.#kinds = await servedKinds(options.api, options.evaluators(), (path) => read.#reportHidden(path));
    return read;
  }

  get kinds(): readonly ServedKind[] {
    return this.#kinds;
  }

  /** Calls `listener` with all kinds when they change, and again if it fails. Returns a function that ends this. */
  onChange(listener: (kinds: readonly ServedKind[]) => Promise<void> | void): () => void {
    return this.#listeners.add(listener);
  }

  /** Starts periodic discovery. */
  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Discovers now, after the set of kinds to look for has changed. */
  rediscover(): Promise<void> {
    this.#discovery = this.#discovery.then(() => this.#discover());
    return this.#discovery;
  }

  #reportHidden(path: string): void {
    if (this.#hidden.has(path)) return;
    this.#hidden.add(path);
    this.#options.log.warn(
      { path },
      'objects of a kind of the quota policy are not charged: allow gpu-manager-quota to get, list and watch them',
    );
  }

  /** A failed discovery or listener is retried in the next round; known kinds stay known if the API server fails. */
  async #discover(): Promise<void> {
    const { api, evaluators, log } = this.#options;
    try {
      const kinds = await servedKinds(api, evaluators(), (path) => this.#reportHidden(path));
      const before = this.#kinds;
      if (namesOf(kinds) === namesOf(before)) return;
      this.#kinds = kinds;
      try {
        for (const listener of this.#listeners) await listener(kinds);
      } catch (error) {
        this.#kinds = before;
        throw error;
      }
      log.info({ kinds: kinds.map(({ path }) => path) }, 'the workload kinds of the API server changed');
    } catch (error) {
      log.warn({ err: error }, 'discovering workload kinds failed; retrying');
    }
  }
}

function namesOf(kinds: readonly ServedKind[]): string {
  return kinds
    .map(({ path }) => path)
    .sort()
    .join(' ');
}
