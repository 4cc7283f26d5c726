import type { Ledger } from './ledger.js';
import type { LedgerObjects } from './ledger-objects.js';

import type { Draft } from './transaction.js';

/** How long a segment without a ledger is left alone; its writer needs less. */
const ORPHAN_MS = 600_000;

/** Drafts whose new segments are stored, or the groups of which a segment could not be stored. */
export type Sealing =
  { readonly ok: true; readonly drafts: readonly Draft[] } | { readonly ok: false; readonly groups: readonly string[] };

/**
 * Moves long tails of drafts into segments and stores these, before the ledgers list them. A ledger that does not exist
 * yet is written whole: only a precondition on a ledger keeps its segments from being swept.
 */
export async function sealDrafts(
  objects: LedgerObjects,
  drafts: readonly Draft[],
  tailChars: number | undefined,
): Promise<Sealing> {
  const refused: string[] = [];
  const sealed = await Promise.all(
    drafts.map(async (draft): Promise<Draft> => {
      const { group, current, next } = draft;
      if (next === null || current === null || current.page === null || !next.records.isLong(tailChars)) return draft;
      const { log, created } = next.records.sealed();
      if (!(await objects.addSegments(group, log.list.series, created))) refused.push(group);
      return { ...draft, next: { ...next, records: log } };
    }),
  );
  return refused.length === 0 ? { ok: true, drafts: sealed } : { ok: false, groups: refused };
}

/**
 * Deletes the segments that a write has cleaned. `ledgers` are the ledgers that are surely written: a write with a lost
 * answer may be in effect, and its segments are left to the sweep.
 */
export async function dropCleaned(
  objects: LedgerObjects,
  drafts: readonly Draft[],
  ledgers: ReadonlyMap<string, Ledger | null>,
): Promise<void> {
  for (const { group, current, next } of drafts) {
    const before = current?.page?.records;
    if (before === undefined || !ledgers.has(group)) continue;
    const cleaned = before.list.ids.filter((id) => next?.records.segments.has(id) !== true);
    if (cleaned.length > 0) await objects.removeSegments(before.list.series, cleaned).catch(() => undefined);
  }
}

/**
 * Deletes segments that no ledger lists, left by writers that ended or whose write conflicted. The ledger is written
 * first, so that the precondition of a writer that would still list such a segment fails.
 */
export async function sweepSegments(objects: LedgerObjects, now: number): Promise<void> {
  const { stored, isListed } = await objects.segments();
  const orphans = stored.filter((one) => !isListed(one) && now - one.createdAt > ORPHAN_MS);
  for (const group of new Set(orphans.map((one) => one.group))) {
    const ledger = (await objects.get(group))?.ledger ?? null;
    if (ledger !== null && (ledger.page === null || ledger.pending !== null)) continue;
    const known = ledger?.page ?? null;
    if (known !== null) {
      const { head } = known;
      const page = { ...known, head: { ...head, revision: head.revision + 1 } };
      if (!(await objects.put(group, ledger, page, null)).ok) continue;
    }
    const listed = ledger?.page?.records.list;
    for (const { series, id } of orphans.filter((one) => one.group === group))
      if (series !== listed?.series || !listed.ids.includes(id)) await objects.removeSegments(series, [id]);
  }
}
