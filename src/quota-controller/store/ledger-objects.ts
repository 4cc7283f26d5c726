import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import { METADATA_LIST, METADATA_ONLY, type KubeApi, type KubeAnswer, type KubeRequest } from '../../kube/client.js';
import { KubeError, type KubeFailure, type KubeFailureCode } from '../../kube/failure.js';
import {
  API_VERSION,
  LEDGER_GROUP_LABEL,
  LEDGERS_PATH,
  TRANSACTIONS_PATH,
  TRANSACTION_KIND,
  itemPath,
} from '../../kube/quota/names.js';
import { isCover } from './cover-objects.js';
import {
  groupOfLedger,
  ledgerName,
  ledgerObject,
  readLedger,
  SEGMENT_LABEL,
  segmentName,
  segmentObject,
  segmentOf,
  segmentsListed,
  segmentText,
  type Ledger,
  type LedgerPage,
  type PendingPage,
  type ReadLedger,
  type SegmentName,
  type SegmentSource,
} from './ledger.js';
import type { Segment } from './record-log.js';

export type Outcome = 'committed' | 'aborted';

/** Result of a conditional write of a ledger; `ledger` is null after a deletion. */
export type Written = { readonly ok: true; readonly ledger: Ledger | null } | { readonly ok: false };

/** A transaction object at the API server. */
export interface TransactionRecord {
  readonly name: string;
  readonly createdAt: number;
}

/** Failures with unknown outcome; the same request may succeed later. */
const RETRIABLE: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>(['unreachable', 'server-error', 'malformed']);
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 25;
const PAGE_SIZE = '200';
/** Requests for segments at a time. */
const SEGMENTS_AT_ONCE = 8;
/** Reads of a ledger whose segments change meanwhile. */
const MAX_READS = 20;

/**
 * Reads and writes ledger and transaction objects, one request each. Rejects with a KubeError if the outcome of a
 * request is unknown.
 */
export class LedgerObjects {
  readonly #api: KubeApi;
  readonly #clock: Clock;

  constructor(api: KubeApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /**
   * Reads a ledger from the API server, never from a cache; null where it does not exist. With `known`, only changes
   * are read and parsed.
   */
  async get(group: string, known: Ledger | null = null): Promise<ReadLedger | null> {
    for (let reads = 1; ; reads++) {
      const answer = await this.#answer({ method: 'GET', path: itemPath(LEDGERS_PATH, ledgerName(group)) });
      if (!answer.ok && answer.code === 'not-found') return null;
      if (!answer.ok) throw new KubeError(`the ledger of ${group} cannot be read`, answer);
      const read = await readLedger(answer.body, (series, ids) => this.#segments(series, ids), known);
      if (read !== null) return read;
      // Another process cleaned up segments between the two reads.
      if (reads >= MAX_READS) throw new Error(`the ledger of ${group} lacks a segment that it lists`);
    }
  }

  /** All ledgers with their records, one after the other: the records of all would take too much memory. */
  async *list(): AsyncGenerator<ReadLedger> {
    const texts = new Map<string, string>();
    const heads: unknown[] = [];
    for await (const object of this.#pages(LEDGERS_PATH)) {
      if (isCover(object)) continue;
      const segment = segmentOf(object);
      if (segment === null) heads.push(object);
      else texts.set(segmentName(segment.series, segment.id), segmentText(object));
    }
    const source: SegmentSource = async (series, ids) => {
      const found = ids.map((id): [number, string | undefined] => [id, texts.get(segmentName(series, id))]);
      return found.every(([, text]) => text !== undefined) ? new Map(found as [number, string][]) : null;
    };
    for (const object of heads) {
      // The list is not of one moment: a ledger that was written meanwhile is read again.
      const read = (await readLedger(object, source)) ?? (await this.get(groupOfLedger(object)?.group ?? ''));
      if (read !== null) yield read;
    }
  }

  /** The groups whose ledgers wait for a transaction. */
  async pending(): Promise<readonly string[]> {
    const groups: string[] = [];
    for await (const object of this.#pages(LEDGERS_PATH, { labelSelector: LEDGER_GROUP_LABEL }))
      if ((object as { readonly spec?: { readonly pending?: unknown } }).spec?.pending !== undefined)
        groups.push(groupOfLedger(object)?.group ?? '');
    return groups;
  }

  /** The resourceVersions of all ledgers, by group. */
  async versions(): Promise<ReadonlyMap<string, string>> {
    const versions = new Map<string, string>();
    for await (const object of this.#pages(LEDGERS_PATH, { labelSelector: LEDGER_GROUP_LABEL }, METADATA_LIST)) {
      const found = groupOfLedger(object);
      if (found !== null) versions.set(found.group, found.resourceVersion);
    }
    return versions;
  }

  /** Stores new segments; false if one cannot be stored because its name is taken. */
  async addSegments(group: string, series: string, segments: readonly Segment[]): Promise<boolean> {
    const stored = await inParallel(segments, async (segment) => {
      const body = segmentObject(group, series, segment);
      const answer = await this.#answer({ method: 'POST', path: LEDGERS_PATH, body, accept: METADATA_ONLY });
      if (answer.ok) return true;
      if (answer.code !== 'already-exists') throw new KubeError(`a segment of ${group} cannot be written`, answer);
      // A retried request meets its own first attempt.
      return (await this.#segments(series, [segment.id]))?.get(segment.id) === segment.text;
    });
    return stored.every(Boolean);
  }

  /** Deletes segments that no ledger lists. What remains is deleted by the next sweep. */
  async removeSegments(series: string, ids: readonly number[]): Promise<void> {
    await inParallel(ids, (id) =>
      this.#api.request({ method: 'DELETE', path: itemPath(LEDGERS_PATH, segmentName(series, id)) }),
    );
  }

  /** All segments at the API server, and those that ledgers list. The segments are listed first. */
  async segments(): Promise<{
    readonly stored: readonly SegmentName[];
    readonly isListed: (one: SegmentName) => boolean;
  }> {
    const stored: SegmentName[] = [];
    for await (const object of this.#pages(LEDGERS_PATH, { labelSelector: SEGMENT_LABEL }, METADATA_LIST))
      stored.push(...[segmentOf(object) ?? []].flat());
    const listed = new Set<string>();
    for await (const object of stored.length === 0
      ? []
      : this.#pages(LEDGERS_PATH, { labelSelector: LEDGER_GROUP_LABEL }))
      for (const { series, ids } of segmentsListed(object)) for (const id of ids) listed.add(segmentName(series, id));
    return { stored, isListed: ({ series, id }) => listed.has(segmentName(series, id)) };
  }

  /** The texts of segments; null if one is not there. */
  async #segments(series: string, ids: readonly number[]): Promise<ReadonlyMap<number, string> | null> {
    const found = await inParallel(ids, async (id): Promise<[number, string] | null> => {
      const answer = await this.#answer({ method: 'GET', path: itemPath(LEDGERS_PATH, segmentName(series, id)) });
      if (answer.ok) return [id, segmentText(answer.body)];
      if (answer.code === 'not-found') return null;
      throw new KubeError('a segment of a ledger cannot be read', answer);
    });
    return found.every((one) => one !== null) ? new Map(found as [number, string][]) : null;
  }

  /** Replaces a ledger with a page or a pending page; `current` is null for a new ledger. */
  async put(
    group: string,
    current: Ledger | null,
    page: LedgerPage | null,
    pending: PendingPage | null,
  ): Promise<Written> {
    const body = ledgerObject(group, current?.resourceVersion ?? null, page, pending);
    const { answer, isRetried } = await this.#request(
      current === null
        ? { method: 'POST', path: LEDGERS_PATH, body, accept: METADATA_ONLY }
        : { method: 'PUT', path: itemPath(LEDGERS_PATH, ledgerName(group)), body, accept: METADATA_ONLY },
    );
    // A retried request conflicts with its own first attempt if the response to that was lost.
    if (!answer.ok && isRetried) {
      const found = await this.#request({ method: 'GET', path: itemPath(LEDGERS_PATH, ledgerName(group)) });
      if (found.answer.ok && isSameSpec(found.answer.body, body)) {
        const { uid, resourceVersion } = metadataOf(found.answer.body);
        return { ok: true, ledger: { group, uid, resourceVersion, page, pending } };
      }
    }
    if (!answer.ok) return conflictOf(`the ledger of ${group} cannot be written`, answer);
    // The API server changes only metadata: the rest is stored as sent.
    const { uid, resourceVersion } = metadataOf(answer.body);
    return { ok: true, ledger: { group, uid, resourceVersion, page, pending } };
  }

  async remove(ledger: Ledger): Promise<Written> {
    const { uid, resourceVersion } = ledger;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
    const { answer, isRetried } = await this.#request({
      method: 'DELETE',
      path: itemPath(LEDGERS_PATH, ledgerName(ledger.group)),
      body,
    });
    if (!answer.ok && isRetried && answer.code === 'not-found') return { ok: true, ledger: null };
    return answer.ok
      ? { ok: true, ledger: null }
      : conflictOf(`the ledger of ${ledger.group} cannot be deleted`, answer);
  }

  /** Records the outcome of a transaction, once; false if another process has already recorded one. */
  async decide(transaction: string, outcome: Outcome): Promise<boolean> {
    const body = {
      apiVersion: API_VERSION,
      kind: TRANSACTION_KIND,
      metadata: { name: transaction },
      spec: { outcome },
    };
    const answer = await this.#answer({ method: 'POST', path: TRANSACTIONS_PATH, body });
    if (answer.ok) return true;
    // Only the author commits, so that an existing committed outcome is the author's own first attempt.
    if (answer.code === 'already-exists') return (await this.outcome(transaction)) === outcome;
    throw new KubeError('a transaction cannot be written', answer);
  }

  /** Reads the outcome of a transaction; null while there is none. */
  async outcome(transaction: string): Promise<Outcome | null> {
    const answer = await this.#answer({ method: 'GET', path: itemPath(TRANSACTIONS_PATH, transaction) });
    if (answer.ok) return (answer.body as { readonly spec: { readonly outcome: Outcome } }).spec.outcome;
    if (answer.code === 'not-found') return null;
    throw new KubeError('a transaction cannot be read', answer);
  }

  /** Deletes the object of a finished transaction; `sweep` deletes those that remain. */
  async forget(transaction: string): Promise<void> {
    await this.#api.request({ method: 'DELETE', path: itemPath(TRANSACTIONS_PATH, transaction) });
  }

  async transactions(): Promise<readonly TransactionRecord[]> {
    const found: TransactionRecord[] = [];
    for await (const object of this.#pages(TRANSACTIONS_PATH, {}, METADATA_LIST)) {
      const { name, creationTimestamp } = metadataOf(object);
      found.push({ name, createdAt: Date.parse(creationTimestamp) });
    }
    return found;
  }

  async #answer(request: KubeRequest): Promise<KubeAnswer> {
    return (await this.#request(request)).answer;
  }

  /** Retries failed requests: in a transaction of this many requests, some are likely to fail. */
  async #request(request: KubeRequest): Promise<{ readonly answer: KubeAnswer; readonly isRetried: boolean }> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#api.request(request);
      if (answer.ok || !RETRIABLE.has(answer.code) || attempt >= ATTEMPTS) return { answer, isRetried: attempt > 1 };
      await wait(this.#clock, FIRST_PAUSE_MS * attempt);
    }
  }

  async *#pages(
    path: string,
    selectors: Readonly<Record<string, string>> = {},
    accept?: string,
  ): AsyncGenerator<unknown, void> {
    for (let next = ''; ;) {
      const query = { ...selectors, limit: PAGE_SIZE, ...(next === '' ? {} : { continue: next }) };
      const answer: KubeAnswer = await this.#answer({
        method: 'GET',
        path,
        query,
        accept,
      });
      if (!answer.ok) throw new KubeError(`${path} cannot be listed`, answer);
      // Some API servers return null instead of an empty list.
      const list = answer.body as {
        readonly items: readonly unknown[] | null;
        readonly metadata?: { readonly continue?: string };
      };
      yield* list.items ?? [];
      next = list.metadata?.continue ?? '';
      if (next === '') return;
    }
  }
}

/** Runs an action for each item, some at a time; results are in the order of the items. */
async function inParallel<T, R>(items: readonly T[], action: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results = new Array<R>(items.length);
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await action(item);
  };
  await Promise.all(Array.from({ length: Math.min(SEGMENTS_AT_ONCE, items.length) }, work));
  return results;
}

function metadataOf(object: unknown): {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
} {
  return (
    object as {
      readonly metadata: {
        readonly name: string;
        readonly uid: string;
        readonly resourceVersion: string;
        readonly creationTimestamp: string;
      };
    }
  ).metadata;
}

function isSameSpec(found: unknown, sent: unknown): boolean {
  return isDeepStrictEqual((found as { readonly spec?: unknown }).spec, (sent as { readonly spec?: unknown }).spec);
}

/** False after a conflict; throws if the outcome is unknown. */
function conflictOf(what: string, answer: KubeFailure): { readonly ok: false } {
  if (['conflict', 'not-found', 'already-exists'].includes(answer.code)) return { ok: false };
  throw new KubeError(what, answer);
}
