import { DEFAULT_POLICY, type Policy, Quota, Restorer, latestHead, type StateHead } from '../../quota/internal.js';
import type { Clock } from '../../host/clock.js';
import { inTurns, Turn } from '../../host/turn.js';
import type { KubeApi } from '../../kube/client.js';
import type { Ledger, LedgerPage } from '../store/ledger.js';
import { LedgerObjects, type Outcome } from '../store/ledger-objects.js';

/**
 * Reads a cluster's ledgers into memory; changes to the result are not written back. Needs only read access to ledgers
 * and transactions. Pages that belong to an open transaction are read in their state before it, pages of a finished
 * transaction in their state after it. Rejects with a KubeError if the ledgers cannot be read.
 */
export async function readClusterLedger(api: KubeApi, clock: Clock, policy: Partial<Policy> = {}): Promise<Quota> {
  const objects = new LedgerObjects(api, clock);
  const restorer = new Restorer({ ...DEFAULT_POLICY, ...policy });
  const outcomes = new Map<string, Promise<Outcome | null>>();
  const turn = new Turn();
  let head: StateHead = { revision: 0, now: 0, lives: 0 };
  restorer.newDictionary();
  for await (const { ledger, changes } of objects.list()) {
    const page = await pageOf(objects, ledger, outcomes);
    if (page === null) continue;
    head = latestHead(head, page.head);
    for (const record of page === ledger.page && changes !== null ? changes.values() : page.records.values()) {
      if (record.value !== null) restorer.add(record);
      if (turn.isOver()) await turn.pass();
    }
  }
  return new Quota({ clock: () => clock.now() }, await inTurns(restorer.finishing(head)));
}

async function pageOf(
  objects: LedgerObjects,
  ledger: Ledger,
  outcomes: Map<string, Promise<Outcome | null>>,
): Promise<LedgerPage | null> {
  if (ledger.pending === null) return ledger.page;
  const { transaction, next } = ledger.pending;
  const request = outcomes.get(transaction) ?? objects.outcome(transaction);
  outcomes.set(transaction, request);
  const outcome = await request;
  if (outcome === 'committed') return next;
  if (outcome === 'aborted') return ledger.page;
  // The transaction is still open, or was finished and deleted since the list; a second read of the ledger shows which.
  const reread = (await objects.get(ledger.group))?.ledger;
  return reread?.pending?.transaction === transaction ? ledger.page : (reread?.page ?? null);
}
