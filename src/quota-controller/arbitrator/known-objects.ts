import type { Informer } from '../../kube/informer.js';

/** What tells states of one object apart. */
interface Named {
  readonly name: string;
  readonly uid: string;
  /** Its resourceVersion as a number. */
  readonly version: number;
}

/**
 * The latest that is known of the objects of a collection: what the watch tells and what our own writes were answered,
 * which the watch tells only later. Without the latter every second write would be one on something old.
 */
export class KnownObjects<T extends Named> {
  readonly #followed: Informer<T>;
  readonly #byName = new Map<string, T>();

  constructor(followed: Informer<T>) {
    this.#followed = followed;
    followed.onChange(({ before, after }) => {
      if (after !== null) this.learn(after);
      else if (before !== null) this.forget(before);
    });
  }

  get followed(): Informer<T> {
    return this.#followed;
  }

  get(name: string): T | null {
    return this.#byName.get(name) ?? null;
  }

  values(): readonly T[] {
    return [...this.#byName.values()];
  }

  /** Takes what is not older than what is known. */
  learn(object: T): void {
    const known = this.#byName.get(object.name);
    if (known === undefined || known.uid !== object.uid || known.version <= object.version)
      this.#byName.set(object.name, object);
  }

  /** One of the same name that was made since stays. */
  forget({ name, uid }: Pick<T, 'name' | 'uid'>): void {
    if (this.#byName.get(name)?.uid === uid) this.#byName.delete(name);
  }
}
