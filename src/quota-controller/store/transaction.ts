import { randomUUID } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import type { Ledger, LedgerPage } from './ledger.js';
import type { LedgerObjects, Outcome } from './ledger-objects.js';

/** The planned change of one ledger. */
export interface Draft {
  readonly group: string;
  /** The ledger as it was read; null if it did not exist. */
  readonly current: Ledger | null;
  /** Null to delete the ledger. */
  readonly next: LedgerPage | null;
}

/** Ledgers after a write, by group; without those that another process has changed since. */
export type TransactionResult =
  | { readonly ok: true; readonly ledgers: ReadonlyMap<string, Ledger | null> }
  | { readonly ok: false; readonly groups: readonly string[] };

/** A transaction that takes longer is not committed, because its outcome may have been swept. */
const MAX_DURATION_MS = 60_000;

/** Number and interval of polls before a pending transaction's author counts as dead. */
const MAX_POLLS = 12;
const POLL_MS = 80;

/** Writes ledgers, one in one request, several in a transaction. */
export function write(objects: LedgerObjects, drafts: readonly Draft[]): Promise<TransactionResult> {
  const [first, ...others] = drafts;
  return first !== undefined && others.length === 0 ? writeOne(objects, first) : writeTogether(objects, drafts);
}

/** Writes one ledger in one request. Changes of several ledgers use `writeTogether`. */
async function writeOne(objects: LedgerObjects, draft: Draft): Promise<TransactionResult> {
  const written = await replace(objects, draft.group, draft.current, draft.next);
  return written.ok
    ? { ok: true, ledgers: new Map([[draft.group, written.ledger]]) }
    : { ok: false, groups: [draft.group] };
}

/**
 * Writes several ledgers atomically, because the API server changes only single objects. First every ledger gets its
 * next page as pending, with its resourceVersion as precondition. Then a transaction object is created, which decides
 * the outcome: its name can be created only once, by the author (committed) or by a process that considers the author
 * dead (aborted). Then any process may move the pending pages into place.
 */
async function writeTogether(objects: LedgerObjects, drafts: readonly Draft[]): Promise<TransactionResult> {
  const startedAt = performance.now();
  const transaction = randomUUID();
  const prepared = await Promise.allSettled(
    drafts.map(({ group, current, next }) => objects.put(group, current, current?.page ?? null, { transaction, next })),
  );
  const waiting = prepared.flatMap((result, index): [Draft, Ledger][] =>
    result.status === 'fulfilled' && result.value.ok && result.value.ledger !== null
      ? [[drafts[index] as Draft, result.value.ledger]]
      : [],
  );
  const undo = (): Promise<unknown> =>
    Promise.allSettled(
      waiting.map(([{ group, current }, ledger]) => replace(objects, group, ledger, current?.page ?? null)),
    );
  if (waiting.length < drafts.length) {
    await undo();
    const failed = prepared.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return {
      ok: false,
      groups: drafts.filter((draft) => !waiting.some(([other]) => other === draft)).map(({ group }) => group),
    };
  }
  if (performance.now() - startedAt > MAX_DURATION_MS || !(await objects.decide(transaction, 'committed'))) {
    await undo();
    return { ok: false, groups: drafts.map(({ group }) => group) };
  }
  const finished = await Promise.allSettled(
    waiting.map(([{ group, next }, ledger]) => replace(objects, group, ledger, next)),
  );
  const ledgers = new Map(
    finished.flatMap((result, index): [string, Ledger | null][] => {
      const [{ group }] = waiting[index] as [Draft, Ledger];
      return result.status === 'fulfilled' && result.value.ok ? [[group, result.value.ledger]] : [];
    }),
  );
  // If a page was not moved into place, other processes still need the outcome.
  if (finished.every(({ status }) => status === 'fulfilled')) void objects.forget(transaction);
  return { ok: true, ledgers };
}

/** Moves a pending ledger to the outcome of its transaction; null if that deletes the ledger. */
export async function resolvePending(
  objects: LedgerObjects,
  found: Ledger | null,
  clock: Clock,
): Promise<Ledger | null> {
  let ledger = found;
  for (let polls = 0; ledger?.pending !== null && ledger !== null;) {
    const { group, pending, page, resourceVersion } = ledger;
    let outcome: Outcome | null = await objects.outcome(pending.transaction);
    if (outcome === null && ++polls > MAX_POLLS)
      outcome = (await objects.decide(pending.transaction, 'aborted')) ? 'aborted' : null;
    if (outcome !== null) {
      const written = await replace(objects, group, ledger, outcome === 'committed' ? pending.next : page);
      if (written.ok) return written.ledger;
    } else if (polls <= MAX_POLLS) await wait(clock, POLL_MS);
    ledger = (await objects.get(group))?.ledger ?? null;
    if (ledger?.resourceVersion !== resourceVersion) polls = 0;
  }
  return ledger;
}

async function replace(
  objects: LedgerObjects,
  group: string,
  current: Ledger | null,
  next: LedgerPage | null,
): ReturnType<LedgerObjects['put']> {
  if (next !== null) return objects.put(group, current, next, null);
  return current === null ? { ok: true, ledger: null } : objects.remove(current);
}
