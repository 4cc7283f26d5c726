import type { Evaluator } from '../quota/evaluators/evaluator.js';
import type { KubeApi } from '../kube/client.js';
import { servedKinds, type ServedKind } from './kinds.js';
import type { QuotaLog } from './log.js';
import type { Clock } from '../host/clock.js';
import { Rounds } from '../host/rounds.js';

export interface ServedKindsOptions {
  readonly api: KubeApi;
  readonly evaluators: readonly Evaluator[];
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

  private constructor(options: ServedKindsOptions) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, options.everyMs ?? 30_000, () => this.#lookAgain());
  }

  /** Rejects with an KubeError where the API server does not say what it has. */
  static async read(options: ServedKindsOptions): Promise<ServedKinds> {
    const read = new ServedKinds(options);
    read.#kinds = await servedKinds(options.api, options.evaluators);
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

  /**
   * What could not be found out, or told, is left for the next round: nothing is dropped because the API server fails.
   */
  async #lookAgain(): Promise<void> {
    const { api, evaluators, log } = this.#options;
    try {
      const kinds = await servedKinds(api, evaluators);
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
