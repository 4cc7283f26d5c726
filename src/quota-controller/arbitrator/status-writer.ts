import { isDeepStrictEqual } from 'node:util';
import type { KubeApi, KubeAnswer } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { API_VERSION, itemPath } from '../names.js';
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
  /** How many are written at once. */
  readonly atOnce: number;
  /** Whether the objects are ours: made where they are missing, and removed where nobody wants them. */
  readonly isOurs: boolean;
  /** What is written before other changes. */
  readonly isUrgent?: (before: S, after: S) => boolean;
  /** Told of what was written, once for each write that happened. */
  readonly written?: (object: T, before: S, after: S) => void;
}

/** So many objects are written in one round: what a fair share of everything is changes for all when one comes. */
const MOST_WRITES = 200;

/**
 * Writes the status of objects where it is not what it should be, on the condition that nobody else has written since.
 * What does not fit into a round, or was refused, comes first in the next.
 */
export class StatusWriter<S extends object, T extends WithStatus<S>> {
  readonly #options: StatusWriterOptions<S, T>;
  /** Names of objects that are not as they should be, the longest so first. */
  readonly #due = new Set<string>();

  constructor(options: StatusWriterOptions<S, T>) {
    this.#options = options;
  }

  /** Whether something is still to be written. */
  get isBehind(): boolean {
    return this.#due.size > 0;
  }

  /**
   * Brings objects nearer to what they should be, by name. Throws an KubeError where the server failed; the next round
   * goes on from there.
   */
  async round(wanted: ReadonlyMap<string, S>): Promise<void> {
    const { known, isOurs, atOnce, isUrgent = () => false } = this.#options;
    for (const [name, status] of wanted) {
      const object = known.get(name);
      if (object !== null && isDeepStrictEqual(object.status, status)) this.#due.delete(name);
      else this.#due.add(name);
    }
    for (const name of this.#due) if (!wanted.has(name)) this.#due.delete(name);
    const urgent = new Set(
      [...this.#due].filter((name) => isUrgent(known.get(name)?.status ?? ({} as S), wanted.get(name) as S)),
    );
    const inOrder = [...urgent, ...[...this.#due].filter((name) => !urgent.has(name))].slice(0, MOST_WRITES);
    const needless = isOurs
      ? known
          .values()
          .filter(({ name }) => !wanted.has(name))
          .slice(0, MOST_WRITES)
      : [];
    const acts = [
      ...inOrder.map((name) => () => this.#write(name, wanted.get(name) as S)),
      ...needless.map((object) => () => this.#remove(object)),
    ];
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (let act = acts.shift(); act !== undefined; act = acts.shift()) await act();
      }),
    );
  }

  async #write(name: string, status: S): Promise<void> {
    const { api, collection, kind, known, written } = this.#options;
    const object = known.get(name) ?? (await this.#make(name));
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

  async #make(name: string): Promise<T | null> {
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

  /** False where somebody was faster: the watch tells what there is now, and the next round starts from that. */
  #isDone(answer: KubeAnswer, name: string): answer is Extract<KubeAnswer, { readonly ok: true }> {
    if (answer.ok) return true;
    if (!['conflict', 'not-found', 'already-exists'].includes(answer.code))
      throw new KubeError(`the status of ${name} cannot be written`, answer);
    return false;
  }
}
