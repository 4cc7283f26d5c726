import { DEFAULT_POLICY, type Policy } from '../quota/core/policy.js';
import { Quota } from '../quota/core/quota.js';
import { Restorer, latestHead } from '../quota/core/restore.js';
import type { Clock } from '../host/clock.js';
import type { KubeApi } from '../kube/client.js';
import type { Ledger, LedgerPage } from './store/ledger.js';
import { LedgerObjects, type Outcome } from './store/ledger-objects.js';

/**
 * The ledger of a cluster as they are now, in memory: whatever is done to them stays here. Writes nothing, so that
 * whoever may read ledgers and transactions may look: of a change of several groups that is under way, the pages before
 * or those after it are taken, by its outcome. Rejects with an KubeError where they cannot be read.
 */
export async function readClusterLedger(api: KubeApi, clock: Clock, policy: Partial<Policy> = {}): Promise<Quota> {
  const objects = new LedgerObjects(api, clock);
  const restorer = new Restorer({ ...DEFAULT_POLICY, ...policy });
  const outcomes = new Map<string, Promise<Outcome | null>>();
  const pages: LedgerPage[] = [];
  for (const found of await objects.list()) {
    const page = await pageOf(objects, found, outcomes);
    if (page !== null) pages.push(page);
  }
  restorer.newDictionary();
  for (const { records } of pages) for (const record of records.values()) restorer.add(record);
  return new Quota({
    clock: () => clock.now(),
    state: restorer.finish(pages.map(({ head }) => head).reduce(latestHead, { revision: 0, now: 0, lives: 0 })),
  });
}

async function pageOf(
  objects: LedgerObjects,
  ledger: Ledger,
  outcomes: Map<string, Promise<Outcome | null>>,
): Promise<LedgerPage | null> {
  if (ledger.pending === null) return ledger.page;
  const { transaction, next } = ledger.pending;
  const asked = outcomes.get(transaction) ?? objects.outcome(transaction);
  outcomes.set(transaction, asked);
  const outcome = await asked;
  if (outcome === 'committed') return next;
  if (outcome === 'aborted') return ledger.page;
  // It is still open, or was finished and forgotten since the ledgers were listed: then the ledger tells.
  const again = (await objects.get(ledger.group))?.ledger;
  return again?.pending?.transaction === transaction ? ledger.page : (again?.page ?? null);
}
