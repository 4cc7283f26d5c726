import { isDeepStrictEqual } from 'node:util';
import type { KubeApi, KubeAnswer } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { API_VERSION, itemPath } from '../../kube/quota/names.js';
import type { KnownObjects } from './known-objects.js';

interface WithStatus<S> {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly version: number;
  readonly status: S;
}

export interface StatusWriterOptions<S extends object, T extends WithStatus<S>> {
  readonly api: KubeApi;
  readonly collection: string;
  readonly kind: string;
  readonly known: KnownObjects<T>;
  readonly read: (object: unknown) => T | null;
  /** Concurrent writes. */
  readonly concurrency: number;
  /** Whether the arbitrator owns the objects: it creates missing objects and deletes unneeded ones. */
  readonly isOurs: boolean;
  /** Whether a change should be written before others. */
  readonly isUrgent?: (before: S, after: S) => boolean;
  /** Called after each write that changed a status. */
  readonly written?: (object: T, before: S, after: S) => void;
}

/** Objects written per round: one new consumer can change the fair shares of all consumers. */
const MAX_WRITES = 200;

/**
 * Writes the status of objects that differ from the wanted status, with the resourceVersion as precondition. Objects
 * that do not fit into a round, or whose write conflicted, are written first in the next round.
 */
export class StatusWriter<S extends object, T extends WithStatus<S>> {
  readonly #options: StatusWriterOptions<S, T>;
  /** Names of objects whose status differs from the wanted status, the oldest first. */
  readonly #due = new Set<string>();

  constructor(options: StatusWriterOptions<S, T>) {
    this.#options = options;
  }

  /** Whether writes remain for the next round. */
  get isBehind(): boolean {
    return this.#due.size > 0;
  }

  /**
   * Writes up to `MAX_WRITES` statuses, by object name. Throws a KubeError if the API server fails; the next round
   * continues with the rest.
   */
  async round(wanted: ReadonlyMap<string, S>): Promise<void> {
    const { known, isOurs, concurrency, isUrgent = () => false } = this.#options;
    for (const [name, status] of wanted) {
      const object = known.get(name);
      if (object !== null && isDeepStrictEqual(object.status, status)) this.#due.delete(name);
      else this.#due.add(name);
    }
    for (const name of this.#due) if (!wanted.has(name)) this.#due.delete(name);
    const urgent = new Set(
      [...this.#due].filter((name) => isUrgent(known.get(name)?.status ?? ({} as S), wanted.get(name) as S)),
    );
    const ordered = [...urgent, ...[...this.#due].filter((name) => !urgent.has(name))].slice(0, MAX_WRITES);
    const unneeded = isOurs
      ? known
          .values()
          .filter(({ name }) => !wanted.has(name))
          .slice(0, MAX_WRITES)
      : [];
    const writes = [
      ...ordered.map((name) => () => this.#write(name, wanted.get(name) as S)),
      ...unneeded.map((object) => () => this.#remove(object)),
    ];
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        for (let write = writes.shift(); write !== undefined; write = writes.shift()) await write();
      }),
    );
  }

  async #write(name: string, status: S): Promise<void> {
    const { api, collection, kind, known, written } = this.#options;
    const object = known.get(name) ?? (await this.#create(name));
    if (object === null) return;
    const metadata = { name, resourceVersion: object.resourceVersion };
    const answer = await api.request({
      method: 'PUT',
      path: `${itemPath(collection, name)}/status`,
      body: { apiVersion: API_VERSION, kind, metadata, status },
    });
    if (!this.#isDone(answer, name)) return;
    this.#learn(answer.body);
    this.#due.delete(name);
    written?.(object, object.status, status);
  }

  async #create(name: string): Promise<T | null> {
    const { api, collection, kind, isOurs } = this.#options;
    if (!isOurs) return null;
    const answer = await api.request({
      method: 'POST',
      path: collection,
      body: { apiVersion: API_VERSION, kind, metadata: { name } },
    });
    return this.#isDone(answer, name) ? this.#learn(answer.body) : null;
  }

  async #remove({ name, uid }: T): Promise<void> {
    const { api, collection, known } = this.#options;
    const answer = await api.request({
      method: 'DELETE',
      path: itemPath(collection, name),
      body: { preconditions: { uid } },
    });
    if (answer.ok || answer.code === 'not-found') known.forget({ name, uid });
    else if (answer.code !== 'conflict') throw new KubeError(`${name} cannot be removed`, answer);
  }

  #learn(body: unknown): T | null {
    const { known, read } = this.#options;
    const object = read(body);
    if (object !== null) known.learn(object);
    return object;
  }

  /** False after a conflict: the watch delivers the new state, and the next round uses that. */
  #isDone(answer: KubeAnswer, name: string): answer is Extract<KubeAnswer, { readonly ok: true }> {
    if (answer.ok) return true;
    if (!['conflict', 'not-found', 'already-exists'].includes(answer.code))
      throw new KubeError(`the status of ${name} cannot be written`, answer);
    return false;
  }
}
