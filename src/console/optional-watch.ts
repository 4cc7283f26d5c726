import type { Clock } from '../host/clock.js';
import { Rounds } from '../host/rounds.js';
import type { Informer } from '../kube/informer.js';
import type { WatchableApi } from '../kube/watchable-api.js';

/** Interval in which the API server is asked whether it serves the collection. */
const CHECK_MS = 30_000;

export interface OptionalWatchOptions<T> {
  readonly api: WatchableApi;
  readonly clock: Clock;
  readonly path: string;
  readonly fieldSelector?: string;
  readonly keep: (object: unknown) => T | null;
  /** Name of an object that `keep` returned. */
  readonly keyOf: (value: T) => string;
  /** An object was added or changed (`value`), or is gone (null). */
  readonly changed: (key: string, value: T | null) => void;
  /** The sentence for readers while the API server does not serve the collection. */
  readonly absence: string;
}

/**
 * Watches a collection while the API server serves it and the console may list it: custom resources may be installed
 * and removed, and older servers have no resource claims.
 */
export class OptionalWatch<T> {
  readonly #options: OptionalWatchOptions<T>;
  readonly #rounds: Rounds;
  #informer: Informer<T> | null = null;
  readonly #known = new Set<string>();
  #absence: string | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: OptionalWatchOptions<T>) {
    this.#options = options;
    this.#rounds = new Rounds(options.clock, CHECK_MS, () => this.#check());
  }

  /** Why nothing is shown, as a sentence; null while the collection is watched. */
  get absence(): string | null {
    return this.#absence ?? (this.#informer?.synced === true ? null : 'The console has not listed these objects yet.');
  }

  start(): void {
    this.#running = this.#check().then(() => this.#rounds.start());
  }

  async stop(): Promise<void> {
    await this.#running;
    await this.#rounds.stop();
    await this.#informer?.stop();
  }

  async #check(): Promise<void> {
    const { api, path, absence } = this.#options;
    const answer = await api.request({ method: 'GET', path, query: { limit: '1' } });
    if (answer.ok) this.#open();
    else if (answer.code === 'not-found') await this.#close(absence);
    else if (answer.code === 'forbidden')
      await this.#close(
        `The console may not list ${path}: apply the ClusterRole gpu-console of this version of gpu-manager.`,
      );
  }

  #open(): void {
    this.#absence = null;
    if (this.#informer !== null) return;
    const { api, path, fieldSelector, keep, keyOf, changed } = this.#options;
    this.#informer = api.informer({ path, keep, fieldSelector });
    this.#informer.onChange(({ before, after }) => {
      const value = after ?? before;
      if (value === null) return;
      const key = keyOf(value);
      if (after === null) this.#known.delete(key);
      else this.#known.add(key);
      changed(key, after);
    });
    this.#informer.start();
  }

  /** Forgets all objects: nothing is known of them any more. */
  async #close(absence: string): Promise<void> {
    this.#absence = absence;
    const informer = this.#informer;
    if (informer === null) return;
    this.#informer = null;
    await informer.stop();
    for (const key of this.#known) this.#options.changed(key, null);
    this.#known.clear();
  }
}
