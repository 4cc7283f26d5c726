import type { Clock } from '../host/clock.js';
import type { Log } from '../host/log.js';
import { Pause } from '../host/pause.js';
import type { KubeClient } from './client.js';
import { WatchInformer, type InformerTiming } from './informer.js';
import { list, record, text } from './json.js';

export interface ServedCollectionOptions<T> {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Log;
  /** API group, such as `policy`. */
  readonly group: string;
  /** Plural name of the resource, such as `poddisruptionbudgets`. */
  readonly resource: string;
  /** The reduced copy of an object of a version of the group; null for an object that is not wanted. */
  readonly keep: (object: unknown, version: string) => T | null;
  readonly timing?: Partial<InformerTiming>;
}

/** How often an API server is asked for a group that it did not serve, or did not answer about. */
const AGAIN_MS = { unserved: 300_000, unanswered: 10_000 };

/**
 * Follows a collection in all namespaces that the API server may not serve, or serves in another version than the one
 * before: the resource of a newer Kubernetes, or of an installed CRD. It takes the version that the server prefers.
 */
export class ServedCollection<T> {
  readonly #options: ServedCollectionOptions<T>;
  readonly #pause: Pause;
  #informer: WatchInformer<T> | null = null;
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(options: ServedCollectionOptions<T>) {
    this.#options = options;
    this.#pause = new Pause(options.clock);
  }

  /** Starts without waiting for the server. */
  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.end();
    await this.#running;
    await this.#informer?.stop();
  }

  /** All objects; null before the first list, and where the API server does not serve the resource. */
  values(): readonly T[] | null {
    return this.#informer?.synced === true ? this.#informer.values() : null;
  }

  async #run(): Promise<void> {
    const { group, resource, keep } = this.#options;
    while (!this.#stopped) {
      const version = await this.#servedVersion();
      if (this.#stopped) return;
      if (typeof version === 'string') {
        const path = `/apis/${group}/${version}/${resource}`;
        this.#informer = new WatchInformer({ ...this.#options, path, keep: (object) => keep(object, version) });
        this.#informer.start();
        return;
      }
      await this.#pause.for(version === null ? AGAIN_MS.unserved : AGAIN_MS.unanswered);
    }
  }

  /** The preferred version that has the resource; null if none has; undefined without an answer. */
  async #servedVersion(): Promise<string | null | undefined> {
    const { client, group, resource } = this.#options;
    const read = (path: string) => client.request({ method: 'GET', path });
    const found = await read(`/apis/${group}`);
    if (!found.ok) return found.code === 'not-found' ? null : undefined;
    for (const entry of list(record(found.body).versions)) {
      const version = text(record(entry).version);
      const resources = await read(`/apis/${group}/${version}`);
      if (!resources.ok && resources.code !== 'not-found') return undefined;
      const names = resources.ok ? list(record(resources.body).resources).map((served) => record(served).name) : [];
      if (names.includes(resource)) return version;
    }
    return null;
  }
}
