import { inTurns } from '../../host/turn.js';
import type { StateHead } from '../../quota/index.js';
import { API_VERSION, LEDGER_GROUP_LABEL, LEDGER_KIND } from '../../kube/quota/names.js';
import { RecordLog, type Segment, type SegmentList } from './record-log.js';
import type { Edits } from './tail.js';

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

/** Label of a segment: the group of its ledger. An object without the ledgers' label is no ledger. */
export const SEGMENT_LABEL = 'quota.gpu-manager.io/segment-of';

/** Name of a segment's object. No name of a ledger begins like this, because `s` is no hexadecimal digit. */
export function segmentName(series: string, id: number): string {
  return `x-s.${series}.${id}`;
}

/** The object of a segment. */
export function segmentObject(group: string, series: string, { id, text }: Segment): unknown {
  return {
    apiVersion: API_VERSION,
    kind: LEDGER_KIND,
    metadata: { name: segmentName(series, id), labels: { [SEGMENT_LABEL]: group } },
    spec: { page: { head: { revision: 0, now: 0, lives: 0 }, children: {}, records: text } },
  };
}

/** Identity of a segment's object. */
export interface SegmentName {
  readonly group: string;
  readonly series: string;
  readonly id: number;
  readonly createdAt: number;
}

/** Reads the identity of a segment from its metadata; null for another object. */
export function segmentOf(object: unknown): SegmentName | null {
  const { metadata } = (object ?? {}) as {
    readonly metadata?: {
      readonly name?: string;
      readonly creationTimestamp?: string;
      readonly labels?: Readonly<Record<string, string>>;
    };
  };
  const group = metadata?.labels?.[SEGMENT_LABEL];
  const [, series, id] = /^x-s\.([0-9a-f]+)\.(\d+)$/.exec(metadata?.name ?? '') ?? [];
  if (group === undefined || series === undefined) return null;
  return { group, series, id: Number(id), createdAt: Date.parse(metadata?.creationTimestamp ?? '') };
}

/** The text of a segment's object. */
export function segmentText(object: unknown): string {
  const text = (object as LedgerObject).spec.page?.records;
  if (text === undefined) throw new Error('a segment of a ledger without records');
  return text;
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
  /** Changed records, without a known one all; null if the comparison is not possible. */
  readonly changes: Edits | null;
}

/** Returns the texts of segments of a series; those of `known` are not needed. Null if one is not there any more. */
export type SegmentSource = (series: string, ids: readonly number[]) => Promise<ReadonlyMap<number, string> | null>;

/** The segments that an object lists, now and after its transaction. */
export function segmentsListed(object: unknown): readonly SegmentList[] {
  const { page, pending } = (object as LedgerObject).spec;
  return [page, pending?.next].flatMap((written) => (written === undefined ? [] : [RecordLog.listed(written.records)]));
}

/**
 * Reads a ledger object. With `known`, an earlier state of the same ledger, only changes are parsed. Null if a listed
 * segment is not there any more: the ledger was written meanwhile, or is damaged. Throws on an object that no engine
 * can have written, because decisions need the whole ledger.
 */
export async function readLedger(
  object: unknown,
  source: SegmentSource,
  known: Ledger | null = null,
): Promise<ReadLedger | null> {
  const { metadata, spec } = object as LedgerObject;
  const group = metadata.labels?.[LEDGER_GROUP_LABEL];
  if (group === undefined) throw new Error(`a ledger without the label ${LEDGER_GROUP_LABEL}`);
  const { page, pending } = spec;
  const before = known?.uid === metadata.uid ? known.page?.records : undefined;
  const read = page === undefined ? null : await readPage(page, source, before);
  if (page !== undefined && read === null) return null;
  const log = read?.page.records;
  const next = pending?.next === undefined ? null : await readPage(pending.next, source, log);
  if (pending?.next !== undefined && next === null) return null;
  const { uid, resourceVersion } = metadata;
  return {
    ledger: {
      group,
      uid,
      resourceVersion,
      page: read?.page ?? null,
      pending: pending === undefined ? null : { transaction: pending.transaction, next: next?.page ?? null },
    },
    changes: read?.changes ?? null,
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

async function readPage(
  { group = '', parent = '', token = '', head, children, records }: WrittenPage,
  source: SegmentSource,
  known?: RecordLog,
): Promise<{ readonly page: LedgerPage; readonly changes: Edits | null } | null> {
  const { series, ids } = RecordLog.lacking(records, known);
  const texts = ids.length === 0 ? new Map<number, string>() : await source(series, ids);
  if (texts === null) return null;
  const { log, changes } = await inTurns(RecordLog.reading(records, texts, known));
  return { page: { group, parent, token, head, children: new Map(Object.entries(children)), records: log }, changes };
}
