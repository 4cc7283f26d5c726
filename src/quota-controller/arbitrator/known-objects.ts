import type { Informer } from '../../kube/informer.js';

/** Fields that identify a state of an object. */
interface Named {
  readonly name: string;
  readonly uid: string;
  /** The resourceVersion as a number. */
  readonly version: number;
}

/**
 * The newest known state of each object of a collection, from the watch and from the responses to our own writes. The
 * watch is later than the responses; without them, every second write would conflict.
 */
export class KnownObjects<T extends Named> {
  readonly #informer: Informer<T>;
  readonly #byName = new Map<string, T>();

  constructor(informer: Informer<T>) {
    this.#informer = informer;
    informer.onChange(({ before, after }) => {
      if (after !== null) this.learn(after);
      else if (before !== null) this.forget(before);
    });
  }

  get informer(): Informer<T> {
    return this.#informer;
  }

  get(name: string): T | null {
    return this.#byName.get(name) ?? null;
  }

  values(): readonly T[] {
    return [...this.#byName.values()];
  }

  /** Keeps an object unless a newer state of it is known. */
  learn(object: T): void {
    const known = this.#byName.get(object.name);
    if (known === undefined || known.uid !== object.uid || known.version <= object.version)
      this.#byName.set(object.name, object);
  }

  /** Forgets an object; a newer object of the same name stays. */
  forget({ name, uid }: Pick<T, 'name' | 'uid'>): void {
    if (this.#byName.get(name)?.uid === uid) this.#byName.delete(name);
  }
}
