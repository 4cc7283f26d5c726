import type { Change } from '../core/state/change.js';
import type { StoredRecord } from '../core/records/record.js';
import type { StateHead } from '../core/records/restore.js';

/**
 * The revision of a group's records in a store: it changes with every commit that touches the group. Opaque, like a
 * resourceVersion.
 */
export type Revision = string;

/** Receives records as a store reads them. */
export interface RecordSink {
  /** The following records have their own dictionary of request shapes. */
  newDictionary(): void;
  add(record: StoredRecord): void;
}

/** The result of a load, in addition to the records. */
export interface Loaded {
  readonly head: StateHead;
  /** Revisions of the groups that have one; empty in a store that only one engine writes to. */
  readonly revisions: ReadonlyMap<string, Revision>;
}

/** A group as it is in the store now, with all its records. */
export interface GroupImage {
  readonly name: string;
  /** Null if there is no such group. */
  readonly revision: Revision | null;
  /** Reading them all may be expensive. The record of the group itself is among the first. */
  readonly records: Iterable<StoredRecord>;
  /** The children, with their revisions. */
  readonly children: ReadonlyMap<string, Revision>;
  /** The changes since another revision, oldest first, with null for removed records; null if the store lacks them. */
  readonly since?: ((revision: Revision) => readonly StoredRecord[] | null) | undefined;
}

/** Changes that are committed together or not at all. */
export interface Batch {
  readonly head: StateHead;
  /**
   * The changes in order. Their values may change after `commit` has returned its promise, so a store encodes or copies
   * them before.
   */
  readonly changes: readonly Change[];
  /**
   * The groups on which the changes were decided, with their revisions at that time; null for a group that did not
   * exist.
   */
  readonly expected: ReadonlyMap<string, Revision | null>;
  /** The whole state, for a store that writes snapshots; it may be read in parts while later batches are committed. */
  readonly everything: () => Iterable<Change>;
  /** The current revision of the state; later than `head` while commands wait for the next commit. */
  readonly reached: () => number;
}

export type Committed =
  /** The batch is durable. `revisions` are the new revisions of the groups of `expected` that exist. */
  | { readonly ok: true; readonly revisions: ReadonlyMap<string, Revision> }
  /** Nothing was written: these groups have other revisions than expected. */
  | { readonly ok: false; readonly code: 'Conflict'; readonly groups: readonly string[] };

/**
 * Durable storage of an engine's state. Every implementation follows the rules of contract.ts.
 *
 * An `exclusive` store belongs to one engine at a time, and its commits never conflict. Other stores may have many
 * writing engines; a commit conflicts if one of its revisions is outdated.
 */
export interface Store {
  readonly exclusive: boolean;
  /** Reads the whole state. The engine calls it once, before any commit. */
  load(sink: RecordSink): Promise<Loaded>;
  /** The existing groups with their revisions; only for stores that are not exclusive. */
  list(): Promise<ReadonlyMap<string, Revision>>;
  /**
   * Reads groups as they are now, never from a cache, and no group that is being written; only for stores that are not
   * exclusive.
   */
  read(groups: readonly string[]): Promise<readonly GroupImage[]>;
  /**
   * Writes a batch. The engine writes one batch at a time to an exclusive store, and to other stores several at a time
   * that share no group. Rejects if the store failed; the outcome of the batch is then unknown.
   */
  commit(batch: Batch): Promise<Committed>;
  close(): Promise<void>;
}
