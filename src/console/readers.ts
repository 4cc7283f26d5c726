import { createHash } from 'node:crypto';
import type { Clock } from '../host/clock.js';
import type { KubeApi, KubeClient } from '../kube/client.js';
import {
  mayUser,
  userOfToken,
  type ClusterUser,
  type ResourceAttributes,
  type UserAnswer,
} from '../kube/user-review.js';
import { TABLE_NAMES, type TableName } from './cluster-model.js';
import { EVERYTHING, LISTED_RESOURCES, type Scope, type SeenNamespaces } from './scope.js';

/** A caller whose token is known. */
export interface Reader {
  readonly name: string;
  /** The API server, asked with the rights of this caller. */
  readonly api: KubeApi;
  /**
   * The tables that it may see now; otherwise whether the token is no longer known, or the API server does not
   * answer.
   */
  scope(): Promise<Scope | 'unknown' | 'unavailable'>;
}

export type ReaderAnswer = { readonly kind: 'reader'; readonly reader: Reader } | Exclude<UserAnswer, { kind: 'user' }>;

/** Identifies the caller by the header `authorization`. */
export interface Readers {
  reader(authorization: string | undefined): Promise<ReaderAnswer>;
}

/** Answers of the API server count for this long, so that a change of rights is effective within it. */
const KEPT_MS = 60_000;
/** An unknown token is asked about again after this. */
const UNKNOWN_MS = 5_000;
/** Limits of what is remembered, and of questions at once, so that callers cannot flood the API server. */
const MAX_TOKENS = 1_024;
const MAX_ANSWERS = 100_000;
const MAX_REVIEWS = 16;
const QUESTIONS_AT_ONCE = 8;

/** Every caller sees and may do everything that the console may. */
export function openReaders(api: KubeApi): Readers {
  const reader: Reader = { name: 'anyone', api, scope: () => Promise.resolve(EVERYTHING) };
  return { reader: () => Promise.resolve({ kind: 'reader', reader }) };
}

/** An API server that takes the tokens of its users too. */
export type TokenApi = KubeApi & Pick<KubeClient, 'withToken'>;

/**
 * Readers are users of the cluster: TokenReview identifies them, and SubjectAccessReview decides which objects they may
 * list. A reader sees a row if it may list the objects that the row is made from.
 */
export class ClusterReaders implements Readers {
  readonly #api: TokenApi;
  readonly #clock: Clock;
  readonly #namespaces: () => ReadonlyMap<TableName, ReadonlySet<string>>;
  readonly #users = new Map<string, { readonly answer: UserAnswer; readonly untilMs: number }>();
  readonly #rights = new Map<string, { readonly allowed: boolean; readonly untilMs: number }>();
  #reviews = 0;

  /** `namespaces`: those that have something to show, by table. */
  constructor(api: TokenApi, clock: Clock, namespaces: () => ReadonlyMap<TableName, ReadonlySet<string>>) {
    this.#api = api;
    this.#clock = clock;
    this.#namespaces = namespaces;
  }

  async reader(authorization: string | undefined): Promise<ReaderAnswer> {
    const token = /^Bearer ([\w.~+/=-]+)$/iu.exec(authorization ?? '')?.[1];
    if (token === undefined) return { kind: 'unknown' };
    const answer = await this.#userOf(token);
    if (answer.kind !== 'user') return answer;
    const scope = async (): Promise<Scope | 'unknown' | 'unavailable'> => {
      const now = await this.#userOf(token);
      return now.kind === 'user' ? ((await this.#scopeOf(now.user)) ?? 'unavailable') : now.kind;
    };
    return { kind: 'reader', reader: { name: answer.user.name, api: this.#api.withToken(token), scope } };
  }

  async #userOf(token: string): Promise<UserAnswer> {
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.#users.get(key);
    if (known !== undefined && this.#clock.now() < known.untilMs) return known.answer;
    if (this.#reviews >= MAX_REVIEWS) return { kind: 'unavailable', reason: 'too many tokens are reviewed at once' };
    this.#reviews += 1;
    const answer = await userOfToken(this.#api, token).finally(() => (this.#reviews -= 1));
    if (answer.kind !== 'unavailable') {
      const forMs = answer.kind === 'user' ? KEPT_MS : UNKNOWN_MS;
      remember(this.#users, MAX_TOKENS, key, { answer, untilMs: this.#clock.now() + forMs });
    }
    return answer;
  }

  /** Null: the API server does not answer. */
  async #scopeOf(user: ClusterUser): Promise<Scope | null> {
    const namespaces = this.#namespaces();
    const tables = new Map<TableName, SeenNamespaces>();
    for (const table of TABLE_NAMES) {
      const { isNamespaced } = LISTED_RESOURCES[table];
      const everywhere = await this.#mayList(user, table, null);
      if (everywhere === null) return null;
      if (everywhere) tables.set(table, null);
      else if (isNamespaced) {
        const seen = await this.#seenNamespaces(user, table, namespaces.get(table) ?? new Set());
        if (seen === null) return null;
        if (seen.size > 0) tables.set(table, seen);
      }
    }
    return { tables };
  }

  /** The namespaces in which a user may list the objects of a table; null if the API server does not answer. */
  async #seenNamespaces(
    user: ClusterUser,
    table: TableName,
    namespaces: ReadonlySet<string>,
  ): Promise<ReadonlySet<string> | null> {
    const open = [...namespaces];
    const seen = new Set<string>();
    let failed = false;
    const ask = async (): Promise<void> => {
      for (let namespace = open.pop(); namespace !== undefined && !failed; namespace = open.pop()) {
        const allowed = await this.#mayList(user, table, namespace);
        if (allowed === null) failed = true;
        else if (allowed) seen.add(namespace);
      }
    };
    await Promise.all(Array.from({ length: QUESTIONS_AT_ONCE }, ask));
    return failed ? null : seen;
  }

  /** Whether a user may list all objects that rows of a table are made from; null namespace: in all namespaces. */
  async #mayList(user: ClusterUser, table: TableName, namespace: string | null): Promise<boolean | null> {
    for (const resource of LISTED_RESOURCES[table].resources) {
      const allowed = await this.#may(user, {
        verb: 'list',
        ...resource,
        ...(namespace === null ? {} : { namespace }),
      });
      if (allowed !== true) return allowed;
    }
    return true;
  }

  async #may(user: ClusterUser, attributes: ResourceAttributes): Promise<boolean | null> {
    const key = createHash('sha256')
      .update(JSON.stringify([user, attributes]))
      .digest('base64');
    const known = this.#rights.get(key);
    if (known !== undefined && this.#clock.now() < known.untilMs) return known.allowed;
    const answer = await mayUser(this.#api, user, { resourceAttributes: attributes });
    if (!answer.ok) return null;
    const { allowed } = answer;
    remember(this.#rights, MAX_ANSWERS, key, { allowed, untilMs: this.#clock.now() + KEPT_MS });
    return allowed;
  }
}

function remember<T>(kept: Map<string, T>, most: number, key: string, value: T): void {
  kept.delete(key);
  if (kept.size >= most) for (const oldest of kept.keys()) if (kept.delete(oldest)) break;
  kept.set(key, value);
}
