import type { QuotaEngine } from '../../quota/index.js';
import type { Account } from '../workloads/workload-object.js';

/** A workload that the ledger charges. */
export interface LedgerCharge extends Account {
  /** Key by `refKey`. */
  readonly key: string;
  readonly uid: string;
}

/** Workloads with a uid that the ledger charges. */
export function* ledgerCharges(engine: QuotaEngine): Generator<LedgerCharge> {
  for (const { kind, key, group, value } of engine.records())
    if (kind === 'workload' && value !== null && value.uid !== '')
      yield { key, uid: value.uid, group, types: value.podSets[0]?.shape.types ?? {} };
}
