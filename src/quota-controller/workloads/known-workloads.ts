import type { WorkloadObject } from './workload-object.js';

/** The newest known state of each existing workload, from watches, lists and single reads. */
export class KnownWorkloads {
  readonly #byKey = new Map<string, WorkloadObject>();
  readonly #byUid = new Map<string, WorkloadObject>();

  /** By its `refKey`. */
  named(key: string): WorkloadObject | null {
    return this.#byKey.get(key) ?? null;
  }

  withUid(uid: string): WorkloadObject | null {
    return this.#byUid.get(uid) ?? null;
  }

  /** True if the workload of this name is the one with this uid. */
  has(key: string, uid: string): boolean {
    return this.#byKey.get(key)?.uid === uid;
  }

  keys(): MapIterator<string> {
    return this.#byKey.keys();
  }

  values(): readonly WorkloadObject[] {
    return [...this.#byKey.values()];
  }

  /** A watch showed the workload. */
  watched(object: WorkloadObject): void {
    this.#byUid.set(object.uid, object);
    this.#byKey.set(object.key, object);
  }

  /** A watch showed the end of the workload. A new one may have the same name already. */
  ended({ key, uid }: WorkloadObject): void {
    this.#byUid.delete(uid);
    this.unlisted(key, uid);
  }

  /** Notes a listed workload; its uid. One that is known in this state stays, so that it is not in memory twice. */
  listed(object: WorkloadObject): string {
    const { key, uid, version, charge } = object;
    const named = this.#byKey.get(key);
    const same = named?.uid === uid && named.version === version && named.charge === charge ? named : object;
    if (named === undefined || named.uid !== uid || named.version <= version) this.#byKey.set(key, same);
    this.#byUid.set(same.uid, same);
    return same.uid;
  }

  /** A list lacked the workload. */
  unlisted(key: string, uid: string): void {
    if (this.has(key, uid)) this.#byKey.delete(key);
  }

  /** The workload was read by itself: a watch may have shown it in a newer state. */
  read(object: WorkloadObject): void {
    const known = this.#byUid.get(object.uid);
    if (known === undefined || known.version <= object.version) this.#byUid.set(object.uid, object);
    const named = this.#byKey.get(object.key);
    if (named === undefined || named.version <= object.version) this.#byKey.set(object.key, object);
  }

  /** `seen` was evaluated again as `resolved`. */
  resolved(seen: WorkloadObject, resolved: WorkloadObject): void {
    if (this.#byUid.get(seen.uid) === seen) this.#byUid.set(seen.uid, resolved);
  }
}
