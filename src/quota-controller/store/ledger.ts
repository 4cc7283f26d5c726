import type { StateHead } from '../../quota/core/restore.js';
import { API_VERSION, LEDGER_GROUP_LABEL, LEDGER_KIND } from '../names.js';
import { RecordLog, type Edits } from './record-log.js';

/** What a ledger says: everything that hangs on one group. */
export interface LedgerPage {
  readonly group: string;
  /** Empty for a root. */
  readonly parent: string;
  /** Changes whenever the group and its parent, or the group and one of its children, are changed together. */
  readonly token: string;
  readonly head: StateHead;
  /** Tokens that children had when this page was written; a child with another one is of another time. */
  readonly children: ReadonlyMap<string, string>;
  readonly records: RecordLog;
}

/** A page that waits for the outcome of a transaction over several groups. */
export interface PendingPage {
  readonly transaction: string;
  /** Null where the ledger is to go. */
  readonly next: LedgerPage | null;
}

/** A ledger as the API server has it. */
export interface Ledger {
  readonly group: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Null of a ledger that is only to come. */
  readonly page: LedgerPage | null;
  readonly pending: PendingPage | null;
}

/** Records of groups that are gone: pods that are remembered for a while. Its ledger is no group's. */
export const NO_GROUP = '';

/**
 * Name of a group's ledger. Names of groups may have capitals and underscores; names of objects may not: such ones are
 * written in hexadecimal digits. No two groups get the same.
 */
export function ledgerName(group: string): string {
  if (group === NO_GROUP) return 'no-group';
  return /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(group) && !/^x-|\.[-.]|-\.|^no-group$/.test(group)
    ? group
    : `x-${Buffer.from(group).toString('hex')}`;
}

/** The group of a ledger, from its metadata alone; null of what is no ledger. */
export function groupOfLedger(object: unknown): { readonly group: string; readonly resourceVersion: string } | null {
  const { metadata } = (object ?? {}) as {
    readonly metadata?: { readonly labels?: Readonly<Record<string, string>>; readonly resourceVersion?: string };
  };
  const group = metadata?.labels?.[LEDGER_GROUP_LABEL];
  return group === undefined ? null : { group, resourceVersion: metadata?.resourceVersion ?? '' };
}

interface WrittenPage {
  /** Absent where empty, as all text: there are servers that take an empty text in a custom resource for null. */
  readonly group?: string;
  readonly parent?: string;
  readonly token?: string;
  readonly head: StateHead;
  readonly children: Readonly<Record<string, string>>;
  /** A RecordLog's text. */
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

/** The object to be sent; with a resourceVersion it replaces what has that one, without it is new. */
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

/** A ledger as it was read, and how it differs from the one that was known. */
export interface ReadLedger {
  readonly ledger: Ledger;
  /** Records that are not as they were in `known`; null where that cannot be told. */
  readonly news: Edits | null;
}

/**
 * Reads a ledger object; of `known`, the same ledger at another time, what did not change is not read again. Throws on
 * what no engine can have written: nothing is decided on half a ledger.
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
    news: read === null ? null : read.news,
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
): { readonly page: LedgerPage; readonly news: Edits | null } {
  const { log, news } = RecordLog.read(records, known);
  return { page: { group, parent, token, head, children: new Map(Object.entries(children)), records: log }, news };
}
