import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import { METADATA_ONLY, type KubeApi, type KubeAnswer, type KubeRequest } from '../../kube/client.js';
import { KubeError, type KubeFailure, type KubeFailureCode } from '../../kube/failure.js';
import { API_VERSION, LEDGERS_PATH, TRANSACTIONS_PATH, TRANSACTION_KIND, itemPath } from '../names.js';
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

/**
 * What became of a write on the condition that a ledger is as it was read: `ledger` is null when it is gone now, as was
 * asked.
 */
export type Written = { readonly ok: true; readonly ledger: Ledger | null } | { readonly ok: false };

/** A transaction as it stands at the API server. */
export interface TransactionRecord {
  readonly name: string;
  readonly createdAt: number;
}

/** Failures after which the same request may succeed, and whose outcome is not known. */
const REPEATED: ReadonlySet<KubeFailureCode> = new Set<KubeFailureCode>(['unreachable', 'server-error', 'malformed']);
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 25;
const PAGE_SIZE = '200';
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/**
 * Ledgers and transactions at the API server, one request each. Rejects with an KubeError where it is unknown what
 * became of a request.
 */
export class LedgerObjects {
  readonly #api: KubeApi;
  readonly #clock: Clock;

  constructor(api: KubeApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Null where there is none. Never from a cache. Of what is `known`, only what changed is read. */
  async get(group: string, known: Ledger | null = null): Promise<ReadLedger | null> {
    const answer = await this.#answer({ method: 'GET', path: itemPath(LEDGERS_PATH, ledgerName(group)) });
    if (answer.ok) return readLedger(answer.body, known);
    if (answer.code === 'not-found') return null;
    throw new KubeError(`the ledger of ${group} cannot be read`, answer);
  }

  async list(): Promise<readonly Ledger[]> {
    return (await this.#pages(LEDGERS_PATH, undefined)).map((object) => readLedger(object).ledger);
  }

  /** Groups that have a ledger, and its resourceVersion. */
  async versions(): Promise<ReadonlyMap<string, string>> {
    const found = (await this.#pages(LEDGERS_PATH, METADATA_LIST)).flatMap((object) => groupOfLedger(object) ?? []);
    return new Map(found.map(({ group, resourceVersion }) => [group, resourceVersion]));
  }

  /**
   * Puts a page, or what is to become of it, in the place of what was read; `current` is null for a ledger that is new.
   */
  async put(
    group: string,
    current: Ledger | null,
    page: LedgerPage | null,
    pending: PendingPage | null,
  ): Promise<Written> {
    const body = ledgerObject(group, current?.resourceVersion ?? null, page, pending);
    const { answer, isRepeated } = await this.#request(
      current === null
        ? { method: 'POST', path: LEDGERS_PATH, body, accept: METADATA_ONLY }
        : { method: 'PUT', path: itemPath(LEDGERS_PATH, ledgerName(group)), body, accept: METADATA_ONLY },
    );
    // The write of which the answer was lost is what a repetition conflicts with.
    if (!answer.ok && isRepeated) {
      const found = await this.#request({ method: 'GET', path: itemPath(LEDGERS_PATH, ledgerName(group)) });
      if (found.answer.ok && isSameSpec(found.answer.body, body)) {
        const { uid, resourceVersion } = metadataOf(found.answer.body);
        return { ok: true, ledger: { group, uid, resourceVersion, page, pending } };
      }
    }
    if (!answer.ok) return lost(`the ledger of ${group} cannot be written`, answer);
    // What was sent is what is there now: only who and when are the server's.
    const { uid, resourceVersion } = metadataOf(answer.body);
    return { ok: true, ledger: { group, uid, resourceVersion, page, pending } };
  }

  async remove(ledger: Ledger): Promise<Written> {
    const { uid, resourceVersion } = ledger;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
    const { answer, isRepeated } = await this.#request({
      method: 'DELETE',
      path: itemPath(LEDGERS_PATH, ledgerName(ledger.group)),
      body,
    });
    if (!answer.ok && isRepeated && answer.code === 'not-found') return { ok: true, ledger: null };
    return answer.ok ? { ok: true, ledger: null } : lost(`the ledger of ${ledger.group} cannot be deleted`, answer);
  }

  /** Says what became of a transaction, once and for all; false where somebody has said so before. */
  async decide(transaction: string, outcome: Outcome): Promise<boolean> {
    const body = {
      apiVersion: API_VERSION,
      kind: TRANSACTION_KIND,
      metadata: { name: transaction },
      spec: { outcome },
    };
    const answer = await this.#answer({ method: 'POST', path: TRANSACTIONS_PATH, body });
    if (answer.ok) return true;
    // Only the author commits: an outcome of committed is the author's own, of which the answer was lost.
    if (answer.code === 'already-exists') return (await this.outcome(transaction)) === outcome;
    throw new KubeError('a transaction cannot be written', answer);
  }

  /** Null while nobody has said. */
  async outcome(transaction: string): Promise<Outcome | null> {
    const answer = await this.#answer({ method: 'GET', path: itemPath(TRANSACTIONS_PATH, transaction) });
    if (answer.ok) return (answer.body as { readonly spec: { readonly outcome: Outcome } }).spec.outcome;
    if (answer.code === 'not-found') return null;
    throw new KubeError('a transaction cannot be read', answer);
  }

  /** Takes a transaction away that no ledger waits for; one that stays is swept up later. */
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

  /**
   * Asks again where the server failed or its answer was lost: a transaction is too many requests for all of them to
   * succeed at once.
   */
  async #request(request: KubeRequest): Promise<{ readonly answer: KubeAnswer; readonly isRepeated: boolean }> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#api.request(request);
      if (answer.ok || !REPEATED.has(answer.code) || attempt >= ATTEMPTS) return { answer, isRepeated: attempt > 1 };
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
      // Of nothing, some servers make no list but null.
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

/** Somebody else came first; or, as an error, nobody knows. */
function lost(what: string, answer: KubeFailure): { readonly ok: false } {
  if (['conflict', 'not-found', 'already-exists'].includes(answer.code)) return { ok: false };
  throw new KubeError(what, answer);
}
