import type { StructuredLog } from '../../host/structured-log.js';
import { Turn } from '../../host/turn.js';
import type { KubeApi } from '../../kube/client.js';
import { refOfKey, type EvaluationOptions, type QuotaEngine } from '../../quota/internal.js';
import { CoverObjects } from '../store/cover-objects.js';
import { ledgerCharges } from './ledger-charges.js';
import { hashOf, readCover, type CoveredObjects } from '../workloads/cover-text.js';
import type { Account } from '../workloads/workload-object.js';

export interface RecalledAccountsOptions {
  readonly api: KubeApi;
  readonly engine: QuotaEngine;
  readonly evaluation: () => EvaluationOptions;
  readonly log: StructuredLog;
}

/**
 * What was covered when a replica last ran, and what is charged by itself although it may have no label, by `hashOf`. A
 * group that pays for a namespace pays for what is there without a label. Rejects with a KubeError if the API server
 * fails.
 */
export async function recalledAccounts(options: RecalledAccountsOptions): Promise<ReadonlyMap<number, Account>> {
  const { api, engine, evaluation, log } = options;
  const { defaultGroup } = evaluation();
  const accounts = new Map<number, Account>();
  const turn = new Turn();
  for (const { key, uid, group, types } of ledgerCharges(engine)) {
    if (turn.isOver()) await turn.pass();
    if ((defaultGroup?.(refOfKey(key).namespace ?? '') ?? '') === '') accounts.set(hashOf(uid), { group, types });
  }
  for (const [group, { text }] of await new CoverObjects(api).list())
    for (const { types, hashes } of coveredIn(group, text, log))
      for (const hash of hashes) accounts.set(hash, { group, types });
  return accounts;
}

function coveredIn(group: string, text: string, log: StructuredLog): readonly CoveredObjects[] {
  try {
    return readCover(text);
  } catch (error) {
    const lost = 'what the charges of a group cover was damaged: what came loose while no replica ran is not charged';
    log.warn({ err: error, group }, lost);
    return [];
  }
}
