import type { StateHead } from '../../quota/index.js';
import { API_VERSION, LEDGER_GROUP_LABEL, LEDGER_KIND } from '../../kube/quota/names.js';
import { RecordLog, type Edits } from './record-log.js';

/** Content of a ledger: all records of one group. */
export interface LedgerPage {
  readonly group: string;
  /** Empty for a root. */
  readonly parent: string;
  /** Changes whenever the group is written together with its parent or a child. */
  readonly token: string;
  readonly head: StateHead;
  /** Tokens of the children when this page was written; a child with another token was written at another time. */
  readonly children: ReadonlyMap<string, string>;
  readonly records: RecordLog;
}

/** A page that waits for the outcome of a transaction over several groups. */
export interface PendingPage {
  readonly transaction: string;
  /** Null if the ledger is to be deleted. */
  readonly next: LedgerPage | null;
}

/** A ledger as the API server returns it. */
export interface Ledger {
  readonly group: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Null for a ledger that does not exist before its transaction commits. */
  readonly page: LedgerPage | null;
  readonly pending: PendingPage | null;
}

/** Name of the ledger for records without a group, such as stopped pods of deleted groups. */
export const NO_GROUP = '';

/**
 * Name of a group's ledger object. Group names that object names do not allow (capitals, underscores) are written in
 * hexadecimal. Names are unique.
 */
export function ledgerName(group: string): string {
  if (group === NO_GROUP) return 'no-group';
  return /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(group) && !/^x-|\.[-.]|-\.|^no-group$/.test(group)
    ? group
    : `x-${Buffer.from(group).toString('hex')}`;
}

/** Reads group and resourceVersion from a ledger's metadata; null for another object. */
export function groupOfLedger(object: unknown): { readonly group: string; readonly resourceVersion: string } | null {
  const { metadata } = (object ?? {}) as {
    readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly resourceVersion?: string };
  };
  const group = metadata?.labels?.[LEDGER_GROUP_LABEL];
  return group === undefined ? null : { group, resourceVersion: metadata?.resourceVersion ?? '' };
}

interface WrittenPage {
  /** Absent if empty, as all texts are: some API servers read an empty text in a custom resource as null. */
  readonly group?: string;
  readonly parent?: string;
  readonly token?: string;
  readonly head: StateHead;
  readonly children: Readonly<Record<string, string>>;
  /** The text of a RecordLog. */
  readonly records: string;
}

interface LedgerObject {
  readonly metadata: {
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly page?: WrittenPage;
    readonly pending?: { readonly transaction: string; readonly next?: WrittenPage };
  };
}

/** The object to send: with a resourceVersion it replaces that version, without it is created. */
export function ledgerObject(
  group: string,
  resourceVersion: string | null,
  page: LedgerPage | null,
  pending: PendingPage | null,
): unknown {
  return {
    apiVersion: API_VERSION,
    kind: LEDGER_KIND,
    metadata: {
      name: ledgerName(group),
      labels: { [LEDGER_GROUP_LABEL]: group },
      ...(resourceVersion === null ? {} : { resourceVersion }),
    },
    spec: {
      ...(page === null ? {} : { page: writePage(page) }),
      ...(pending === null
        ? {}
        : {
            pending: {
              transaction: pending.transaction,
              ...(pending.next === null ? {} : { next: writePage(pending.next) }),
            },
          }),
    },
  };
}

/** A ledger, and its changes compared with the known one. */
export interface ReadLedger {
  readonly ledger: Ledger;
  /** Changed records; null if the comparison is not possible. */
  readonly changes: Edits | null;
}

/**
 * Reads a ledger object. With `known`, an earlier state of the same ledger, only changes are parsed. Throws on an
 * object that no engine can have written, because decisions need the whole ledger.
 */
export function readLedger(object: unknown, known: Ledger | null = null): ReadLedger {
  const { metadata, spec } = object as LedgerObject;
  const group = metadata.labels?.[LEDGER_GROUP_LABEL];
  if (group === undefined) throw new Error(`a ledger without the label ${LEDGER_GROUP_LABEL}`);
  const { page, pending } = spec;
  const read =
    page === undefined ? null : readPage(page, known?.uid === metadata.uid ? (known.page?.records ?? null) : null);
  return {
    ledger: {
      group,
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      page: read === null ? null : read.page,
      pending:
        pending === undefined
          ? null
          : {
              transaction: pending.transaction,
              next: pending.next === undefined ? null : readPage(pending.next, null).page,
            },
    },
    changes: read === null ? null : read.changes,
  };
}

function writePage({ group, parent, token, head, children, records }: LedgerPage): WrittenPage {
  return {
    ...(group === '' ? {} : { group }),
    ...(parent === '' ? {} : { parent }),
    ...(token === '' ? {} : { token }),
    head,
    children: Object.fromEntries(children),
    records: records.text,
  };
}

function readPage(
  { group = '', parent = '', token = '', head, children, records }: WrittenPage,
  known: RecordLog | null,
): { readonly page: LedgerPage; readonly changes: Edits | null } {
  const { log, changes } = RecordLog.read(records, known);
  return { page: { group, parent, token, head, children: new Map(Object.entries(children)), records: log }, changes };
}
