import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import { METADATA_LIST, METADATA_ONLY, type KubeApi, type KubeAnswer, type KubeRequest } from '../../kube/client.js';
import { KubeError, type KubeFailure, type KubeFailureCode } from '../../kube/failure.js';
import { API_VERSION, LEDGERS_PATH, TRANSACTIONS_PATH, TRANSACTION_KIND, itemPath } from '../../kube/quota/names.js';
import {
  groupOfLedger,
  ledgerName,
  ledgerObject,
  readLedger,
  type Ledger,
  type LedgerPage,
  type PendingPage,
  type ReadLedger,
} from './ledger.js';

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
   * are parsed.
   */
  async get(group: string, known: Ledger | null = null): Promise<ReadLedger | null> {
    const answer = await this.#answer({ method: 'GET', path: itemPath(LEDGERS_PATH, ledgerName(group)) });
    if (answer.ok) return readLedger(answer.body, known);
    if (answer.code === 'not-found') return null;
    throw new KubeError(`the ledger of ${group} cannot be read`, answer);
  }

  async list(): Promise<readonly Ledger[]> {
    return (await this.#pages(LEDGERS_PATH, undefined)).map((object) => readLedger(object).ledger);
  }

  /** The resourceVersions of all ledgers, by group. */
  async versions(): Promise<ReadonlyMap<string, string>> {
    const found = (await this.#pages(LEDGERS_PATH, METADATA_LIST)).flatMap((object) => groupOfLedger(object) ?? []);
    return new Map(found.map(({ group, resourceVersion }) => [group, resourceVersion]));
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
    return (await this.#pages(TRANSACTIONS_PATH, METADATA_LIST)).map((object) => {
      const { name, creationTimestamp } = metadataOf(object);
      return { name, createdAt: Date.parse(creationTimestamp) };
    });
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

  async #pages(path: string, accept: string | undefined): Promise<readonly unknown[]> {
    const items: unknown[] = [];
    for (let next = ''; ;) {
      const query = { limit: PAGE_SIZE, ...(next === '' ? {} : { continue: next }) };
      const answer: KubeAnswer = await this.#answer({
        method: 'GET',
        path,
        query,
        ...(accept === undefined ? {} : { accept }),
      });
      if (!answer.ok) throw new KubeError(`${path} cannot be listed`, answer);
      // Some API servers return null instead of an empty list.
      const list = answer.body as {
        readonly items: readonly unknown[] | null;
        readonly metadata?: { readonly continue?: string };
      };
      items.push(...(list.items ?? []));
      next = list.metadata?.continue ?? '';
      if (next === '') return items;
    }
  }
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
