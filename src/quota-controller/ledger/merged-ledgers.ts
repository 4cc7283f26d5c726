import type { Clock } from '../../host/clock.js';
import type { KubeApi } from '../../kube/client.js';
import { CoverObjects } from '../store/cover-objects.js';
import { LedgerObjects } from '../store/ledger-objects.js';
import { resolvePending } from '../store/transaction.js';

/** Size of a ledger at the API server. */
export interface StoredLedger {
  readonly group: string;
  /** Characters of the ledger object. */
  readonly object: number;
  /** Characters with all segments. */
  readonly all: number;
  readonly segments: number;
}

/** Lists the ledgers. Rejects with a KubeError if the API server fails. */
export async function storedLedgers(api: KubeApi, clock: Clock): Promise<readonly StoredLedger[]> {
  const stored: StoredLedger[] = [];
  for await (const { ledger } of new LedgerObjects(api, clock).list()) {
    if (ledger.page === null) continue;
    const { text, length, segments } = ledger.page.records;
    stored.push({ group: ledger.group, object: text.length, all: length, segments: segments.size });
  }
  return stored;
}

/**
 * Writes all records of each ledger into its object and deletes all other objects, as earlier versions need it. No
 * replica may run, because a concurrent write makes it fail. Rejects if a ledger is larger than an object may be; what
 * was merged before stays merged. Returns the number of merged ledgers.
 */
export async function mergeLedgers(api: KubeApi, clock: Clock): Promise<number> {
  const objects = new LedgerObjects(api, clock);
  let merged = 0;
  for await (const found of objects.list()) {
    const ledger = await resolvePending(objects, found.ledger, clock);
    const { series, ids } = ledger?.page?.records.list ?? { series: '', ids: [] };
    if (ledger === null || ledger.page === null || series === '') continue;
    const page = { ...ledger.page, records: ledger.page.records.merged() };
    const written = await objects.put(ledger.group, ledger, page, null);
    if (!written.ok)
      throw new Error(`the ledger of ${ledger.group} was changed by a running replica: stop all replicas and retry`);
    await objects.removeSegments(series, ids);
    merged++;
  }
  const covers = new CoverObjects(api);
  for (const group of (await covers.list()).keys()) await covers.remove(group);
  return merged;
}
