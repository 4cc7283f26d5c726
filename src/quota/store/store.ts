import type { Change } from '../core/change.js';
import type { StoredRecord } from '../core/record.js';
import type { StateHead } from '../core/restore.js';

/**
 * The state of a group's records in a store: it differs after every commit that touches the group. Opaque, as a
 * resourceVersion.
 */
export type Revision = string;

/** Takes records as a store reads them. */
export interface RecordSink {
  /** The records that follow name shapes on their own: they were written with a ShapeBook of their own. */
  newDictionary(): void;
  add(record: StoredRecord): void;
}

/** What was loaded beside the records. */
export interface Loaded {
  readonly head: StateHead;
  /** Revisions of the groups that have one; empty in a store that only one engine writes to. */
  readonly revisions: ReadonlyMap<string, Revision>;
}

/** A group as it is in the store now, with everything that hangs on it. */
export interface GroupImage {
  readonly name: string;
  /** Null where there is no such group. */
  readonly revision: Revision | null;
  readonly records: readonly StoredRecord[];
  /** Its children, with their revisions. */
  readonly children: ReadonlyMap<string, Revision>;
  /** Where the store knows what changed since another revision: that, with a value of null for what is gone. */
  readonly since?: { readonly revision: Revision; readonly records: readonly StoredRecord[] } | undefined;
}

/** Changes that happen together or not at all. */
export interface Batch {
  readonly head: StateHead;
  /**
   * In order. Their values may change once `commit` has returned its promise: a store encodes or copies them before.
   */
  readonly changes: readonly Change[];
  /** The groups that the changes were decided on, with the revisions they had then: null for one that was not there. */
  readonly expected: ReadonlyMap<string, Revision | null>;
  /**
   * Everything there is, for a store that writes snapshots; may be read slice by slice while later batches are
   * committed.
   */
  readonly everything: () => Iterable<Change>;
  /** The revision that the state has reached by now: beyond `head` where commands wait for the next commit. */
  readonly reached: () => number;
}

export type Committed =
  /** Durable. `revisions` are the new ones of the groups of `expected` that are there. */
  | { readonly ok: true; readonly revisions: ReadonlyMap<string, Revision> }
  /** Nothing was written: these groups are not as they were expected. */
  | { readonly ok: false; readonly code: 'Conflict'; readonly groups: readonly string[] };

/**
 * Where the state of an engine outlives it. Every implementation keeps the rules of contract.ts.
 *
 * An `exclusive` store belongs to one engine at a time: commits never conflict. The others may be written by many
 * engines; each commit is decided on revisions, and conflicts if one of them is not current any more.
 */
export interface Store {
  readonly exclusive: boolean;
  /** Reads everything. To be called once, before any commit. */
  load(sink: RecordSink): Promise<Loaded>;
  /** The groups there are, with their revisions. Only of stores that are not exclusive. */
  list(): Promise<ReadonlyMap<string, Revision>>;
  /**
   * Reads some groups as they are now, never from a cache; none that is being written. Only of stores that are not
   * exclusive.
   */
  read(groups: readonly string[]): Promise<readonly GroupImage[]>;
  /**
   * Writes a batch; in an exclusive store one at a time, in the others several at a time where no two are about the
   * same group. Rejects where the store failed: what became of the batch is unknown then.
   */
  commit(batch: Batch): Promise<Committed>;
  close(): Promise<void>;
}
