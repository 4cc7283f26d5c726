import { randomUUID } from 'node:crypto';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import type { Ledger, LedgerPage } from './ledger.js';
import type { LedgerObjects, Outcome } from './ledger-objects.js';

/** What is to become of one ledger. */
export interface Draft {
  readonly group: string;
  /** As it was read; null where it was not there. */
  readonly current: Ledger | null;
  /** Null where it is to go. */
  readonly next: LedgerPage | null;
}

/** Ledgers after a write, by group; those that somebody else has taken further already are missing. */
export type Finished =
  | { readonly ok: true; readonly ledgers: ReadonlyMap<string, Ledger | null> }
  | { readonly ok: false; readonly groups: readonly string[] };

/** A transaction that took longer than this is not committed any more: its outcome may have been swept up. */
const LONGEST_MS = 60_000;

/**
 * How often, and how long apart, somebody who finds a transaction under way looks again before taking its author for
 * dead.
 */
const LOOKS = 12;
const LOOK_MS = 80;

/**
 * Writes one ledger. The API server changes single objects only, so this is also where a change of several begins: see
 * writeTogether.
 */
export async function writeOne(objects: LedgerObjects, draft: Draft): Promise<Finished> {
  const written = await replace(objects, draft.group, draft.current, draft.next);
  return written.ok
    ? { ok: true, ledgers: new Map([[draft.group, written.ledger]]) }
    : { ok: false, groups: [draft.group] };
}

/**
 * Writes several ledgers together or not at all. First each of them is given its next page as one that waits, on the
 * condition that it is as it was read. Then a transaction object is made, which is the moment of truth: names are given
 * once, so whoever makes it first says what becomes of the pages, their author (committed) or somebody who took him for
 * dead (aborted). Then the pages take their places, which anybody may do.
 */
export async function writeTogether(objects: LedgerObjects, drafts: readonly Draft[]): Promise<Finished> {
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
  if (performance.now() - startedAt > LONGEST_MS || !(await objects.decide(transaction, 'committed'))) {
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
  // Where a page could not be put in its place, its outcome is still needed.
  if (finished.every(({ status }) => status === 'fulfilled')) void objects.forget(transaction);
  return { ok: true, ledgers };
}

/** Brings a ledger that waits for a transaction to its outcome. Null where it is gone then. */
export async function settled(objects: LedgerObjects, found: Ledger | null, clock: Clock): Promise<Ledger | null> {
  let ledger = found;
  for (let looks = 0; ledger?.pending !== null && ledger !== null;) {
    const { group, pending, page, resourceVersion } = ledger;
    let outcome: Outcome | null = await objects.outcome(pending.transaction);
    if (outcome === null && ++looks > LOOKS)
      outcome = (await objects.decide(pending.transaction, 'aborted')) ? 'aborted' : null;
    if (outcome !== null) {
      const written = await replace(objects, group, ledger, outcome === 'committed' ? pending.next : page);
      if (written.ok) return written.ledger;
    } else if (looks <= LOOKS) await wait(clock, LOOK_MS);
    ledger = (await objects.get(group))?.ledger ?? null;
    if (ledger?.resourceVersion !== resourceVersion) looks = 0;
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
