import { expired } from './api-failure.js';
import type { KubeObject } from './kube-object.js';
import type { ResourceType } from './resource-type.js';

export interface Change {
  readonly revision: number;
  readonly type: ResourceType;
  readonly event: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The object after the change; for a deletion its last state, with the revision of the deletion. */
  readonly object: KubeObject;
  readonly previous: KubeObject | null;
}

/**
 * Objects, the one revision counter of the whole server, and the history from which watches resume. It knows no rules:
 * those are in object-rules.ts. Objects are replaced, never changed.
 */
export class ObjectStore {
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #historyLimit: number;
  #history: Change[] = [];
  #revision: number;
  /** Changes up to and including this revision are dropped. */
  #compacted: number;

  constructor(options: { readonly firstRevision: number; readonly historyLimit: number }) {
    this.#revision = options.firstRevision;
    this.#compacted = options.firstRevision;
    this.#historyLimit = options.historyLimit;
  }

  get revision(): number {
    return this.#revision;
  }

  get(type: ResourceType, namespace: string, name: string): KubeObject | null {
    return this.#of(type).get(keyOf(namespace, name)) ?? null;
  }

  /** Sorted by namespace and name. */
  list(type: ResourceType, namespace: string | null): KubeObject[] {
    const keys = [...this.#of(type).keys()].sort();
    return keys.flatMap((key) => {
      const object = this.#of(type).get(key);
      return object === undefined || (namespace !== null && object.metadata.namespace !== namespace) ? [] : [object];
    });
  }

  /** Stores one object with a new revision. */
  put(type: ResourceType, object: KubeObject): KubeObject {
    const key = keyOf(object.metadata.namespace ?? '', object.metadata.name ?? '');
    const previous = this.#of(type).get(key) ?? null;
    const stored = this.#stamp(object);
    this.#of(type).set(key, stored);
    this.#record({
      revision: this.#revision,
      type,
      event: previous === null ? 'ADDED' : 'MODIFIED',
      object: stored,
      previous,
    });
    return stored;
  }

  remove(type: ResourceType, object: KubeObject): KubeObject {
    const key = keyOf(object.metadata.namespace ?? '', object.metadata.name ?? '');
    const previous = this.#of(type).get(key) ?? null;
    this.#of(type).delete(key);
    const last = this.#stamp(object);
    this.#record({ revision: this.#revision, type, event: 'DELETED', object: last, previous });
    return last;
  }

  /** Changes of one resource after `revision`; refuses with 410 when they are dropped. */
  changesSince(type: ResourceType, revision: number): Change[] {
    if (revision < this.#compacted) throw expired(`too old resource version: ${revision} (${this.#compacted})`);
    return this.#history.filter((change) => change.revision > revision && change.type === type);
  }

  /** Drops the history: resuming from an older revision answers 410. */
  compact(): void {
    this.#history = [];
    this.#compacted = this.#revision;
  }

  /** Lowers the counter and keeps the objects, as after a restored backup. */
  rewindRevision(revision: number): void {
    this.#history = [];
    this.#revision = revision;
    this.#compacted = revision;
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #of(type: ResourceType): Map<string, KubeObject> {
    const key = `${type.group}/${type.plural}`;
    const objects = this.#objects.get(key) ?? new Map<string, KubeObject>();
    this.#objects.set(key, objects);
    return objects;
  }

  #stamp(object: KubeObject): KubeObject {
    this.#revision += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } };
  }

  #record(change: Change): void {
    this.#history.push(change);
    if (this.#history.length > this.#historyLimit) {
      const forgotten = this.#history.shift();
      this.#compacted = forgotten?.revision ?? this.#compacted;
    }
    for (const listener of this.#listeners) listener(change);
  }
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
