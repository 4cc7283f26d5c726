import { DeviceIds } from '../../gpu/device-id.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import type { Inventory } from '../gpus/index.js';

/**
 * Builds the ledger's view of the node. GPUs of `unusable` (reasons by UUID) keep their allocations and get no new
 * ones; GPUs with foreign processes (counts by UUID) are chosen last.
 */
export function ledgerNode(
  inventory: Inventory,
  { shareMode, wholeInstances, suspendFactor }: Pick<LedgerNode, 'shareMode' | 'wholeInstances' | 'suspendFactor'>,
  unusable: ReadonlyMap<string, string> = new Map(),
  foreignProcessCounts: ReadonlyMap<string, number> = new Map(),
): LedgerNode {
  return {
    gpus: inventory.gpus.map((gpu) => ({
      gpu,
      usable: !unusable.has(gpu.uuid),
      processCount: foreignProcessCounts.get(gpu.uuid) ?? 0,
    })),
    topology: inventory.topology,
    ids: new DeviceIds(inventory.gpus),
    shareMode,
    wholeInstances,
    suspendFactor,
  };
}
