import type { StoredRecord } from '../core/records/record.js';
import { toRecord } from '../core/records/record-format.js';
import type { StateHead } from '../core/records/restore.js';
import type { Batch, Committed, GroupImage, Loaded, RecordSink, Revision, Store } from './store.js';

/** Memory that several stores share, as clients share an API server. */
export class SharedMemory {
  readonly records = new Map<string, StoredRecord>();
  readonly revisions = new Map<string, Revision>();
  head: StateHead = { revision: 0, now: 0, lives: 0 };
  #written = 0;

  nextRevision(): Revision {
    return `${++this.#written}`;
  }
}

/**
 * Keeps records in memory. Several engines may open stores on one SharedMemory; commits are checked by revisions of
 * groups.
 */
export class MemoryStore implements Store {
  readonly exclusive = false;
  readonly #memory: SharedMemory;

  constructor(memory: SharedMemory = new SharedMemory()) {
    this.#memory = memory;
  }

  async load(sink: RecordSink): Promise<Loaded> {
    const { records, head, revisions } = this.#memory;
    sink.newDictionary();
    for (const record of records.values()) sink.add(record);
    return { head, revisions: new Map(revisions) };
  }

  async list(): Promise<ReadonlyMap<string, Revision>> {
    return new Map(this.#memory.revisions);
  }

  async read(groups: readonly string[]): Promise<readonly GroupImage[]> {
    const records = [...this.#memory.records.values()];
    const { revisions } = this.#memory;
    return groups.map((name) => ({
      name,
      revision: revisions.get(name) ?? null,
      records: records.filter(({ group }) => group === name),
      children: new Map(
        records.flatMap((record): [string, Revision][] =>
          record.kind === 'group' && record.value?.parent === name
            ? [[record.key, revisions.get(record.key) ?? '']]
            : [],
        ),
      ),
    }));
  }

  async commit(batch: Batch): Promise<Committed> {
    const { records, revisions } = this.#memory;
    const groups = [...batch.expected]
      .filter(([name, revision]) => (revisions.get(name) ?? null) !== revision)
      .map(([name]) => name);
    // Two engines may put one workload into two groups at the same time; such commits have no group in common. The
    // records of stopped pods outlive their group: what does not exist any more cannot conflict.
    for (const { kind, key, group, value } of batch.changes) {
      const there = records.get(`${kind} ${key}`)?.group ?? '';
      if (value !== null && there !== group && !batch.expected.has(there) && revisions.has(there)) groups.push(there);
    }
    if (groups.length > 0) return { ok: false, code: 'Conflict', groups: [...new Set(groups)] };
    for (const change of batch.changes) {
      const name = `${change.kind} ${change.key}`;
      // The record may have moved to another group.
      if (change.value !== null) records.set(name, toRecord(change, null));
      else if (records.get(name)?.group === change.group) records.delete(name);
    }
    const { head } = this.#memory;
    this.#memory.head = {
      revision: Math.max(head.revision, batch.head.revision),
      now: Math.max(head.now, batch.head.now),
      lives: Math.max(head.lives, batch.head.lives),
    };
    const written = new Map<string, Revision>();
    for (const name of batch.expected.keys()) {
      if (!records.has(`group ${name}`)) revisions.delete(name);
      else {
        const revision = this.#memory.nextRevision();
        revisions.set(name, revision);
        written.set(name, revision);
      }
    }
    return { ok: true, revisions: written };
  }

  async close(): Promise<void> {}
}
