import type { Evaluator } from '../quota/evaluators/evaluator.js';
import type { KubeApi } from '../kube/client.js';
import { servedKinds, type ServedKind } from './kinds.js';
import type { QuotaLog } from './log.js';
import type { Clock } from '../host/clock.js';
import { Rounds } from '../host/rounds.js';

export interface ServedKindsOptions {
  readonly api: KubeApi;
  /** The kinds to look for, asked for in each round. */
  readonly evaluators: () => readonly Evaluator[];
  readonly log: QuotaLog;
  readonly clock: Clock;
  readonly everyMs?: number;
}

/** The kinds of workloads that the API server has now: custom resources come and go while we run. */
export class ServedKinds {
  readonly #options: ServedKindsOptions;
  readonly #rounds: Rounds;
  readonly #listeners = new Set<(kinds: readonly ServedKind[]) => Promise<void> | void>();
  #kinds: readonly ServedKind[] = [];
  /** Kinds that may not be read, of which the log was told. */
  readonly #hidden = new Set<string>();
  #looking: Promise<void> = Promise.resolve();

  private constructor(options: ServedKindsOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, options.everyMs ?? 30_000, () => this.lookAgain());
  }

  /** Rejects with an KubeError where the API server does not say what it has. */
  static async read(options: ServedKindsOptions): Promise<ServedKinds> {
    const read = new ServedKinds(options);
    read.#kinds = await servedKinds(options.api, options.evaluators(), (path) => read.#tellHidden(path));
    return read;
  }

  get kinds(): readonly ServedKind[] {
    return this.#kinds;
  }

  /**
   * Calls `listener` with all kinds when there are others than before; one that fails is called again. Returns what
   * ends that.
   */
  onChange(listener: (kinds: readonly ServedKind[]) => Promise<void> | void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Looks now and then from now on. */
  start(): void {
    this.#rounds.start();
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Looks now: other kinds may be looked for than before. */
  lookAgain(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#lookAgain());
    return this.#looking;
  }

  #tellHidden(path: string): void {
    if (this.#hidden.has(path)) return;
    this.#hidden.add(path);
    this.#options.log.warn(
      { path },
      'objects of a kind of the quota policy are not charged: allow gpu-manager-quota to get, list and watch them',
    );
  }

  /**
   * What could not be found out, or told, is left for the next round: nothing is dropped because the API server fails.
   */
  async #lookAgain(): Promise<void> {
    const { api, evaluators, log } = this.#options;
    try {
      const kinds = await servedKinds(api, evaluators(), (path) => this.#tellHidden(path));
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
