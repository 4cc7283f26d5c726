import type { CheckpointStore } from './ports.js';
import { decodeCheckpoint, EMPTY_CHECKPOINT, type CheckpointContent } from '../../gpu/ledger/checkpoint.js';
import { legacyFromOriginal } from '../../gpu/ledger/legacy.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import type { Log } from '../../host/log.js';

/**
 * Reads the checkpoint. An invalid checkpoint is logged and the ledger is rebuilt from the kubelet; the start never
 * fails. Containers in a checkpoint of tkestack gpu-manager keep their GPUs.
 */
export async function restoredCheckpoint(
  checkpoint: CheckpointStore,
  node: LedgerNode,
  log: Log,
): Promise<CheckpointContent> {
  let text: string | null;
  try {
    text = await checkpoint.load();
  } catch (error) {
    log.warn({ err: error }, 'the checkpoint could not be read; rebuilding allocations from the kubelet');
    return EMPTY_CHECKPOINT;
  }
  if (text === null) return EMPTY_CHECKPOINT;
  const decoded = decodeCheckpoint(text);
  if (!decoded.ok) {
    log.warn({ reason: decoded.reason }, 'the checkpoint is not valid; rebuilding allocations from the kubelet');
    return EMPTY_CHECKPOINT;
  }
  if (decoded.format === 'current') return decoded.content;
  const legacy = legacyFromOriginal(node, decoded.allocations);
  log.warn(
    { containers: legacy },
    'found a checkpoint of tkestack gpu-manager; its containers keep their GPUs until they end',
  );
  await checkpoint.keepOriginal(text).catch((error: unknown) => {
    log.warn(
      { err: error },
      'cannot save the checkpoint of tkestack gpu-manager; a rollback would lose its allocations',
    );
  });
  return { ...EMPTY_CHECKPOINT, legacy };
}
