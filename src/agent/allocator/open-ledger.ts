import type { CheckpointContent } from '../../gpu/ledger/checkpoint.js';
import type { LedgerNode } from '../../gpu/ledger/state.js';
import type { MigStrategy } from '../../gpu/mig.js';
import type { Log } from '../../host/log.js';
import type { Gpus } from '../gpus/index.js';
import { checkpointFile } from './checkpoint-file.js';
import { ledgerNode } from './ledger-node.js';
import type { CheckpointStore } from './ports.js';
import { restoredCheckpoint } from './restored-checkpoint.js';

export interface LedgerNeeds {
  readonly config: {
    readonly checkpointPath: string;
    readonly shareMode: boolean;
    readonly suspendFactor: number;
    readonly migStrategy: MigStrategy;
  };
  readonly gpus: Pick<Gpus, 'inventory' | 'health'>;
  readonly log: Log;
}

/** The ledger of the last run of the agent, and the GPUs of this one. */
export interface RestoredLedger {
  readonly node: LedgerNode;
  readonly checkpoint: CheckpointStore;
  readonly restored: CheckpointContent;
}

/** Reads the checkpoint. */
export async function openLedger({ config, gpus, log }: LedgerNeeds): Promise<RestoredLedger> {
  const checkpoint = checkpointFile(config.checkpointPath);
  const { shareMode, suspendFactor, migStrategy } = config;
  const node = ledgerNode(
    gpus.inventory,
    { shareMode, suspendFactor, wholeInstances: migStrategy === 'whole' || migStrategy === 'dynamic' },
    gpus.health.unusable(),
  );
  return { node, checkpoint, restored: await restoredCheckpoint(checkpoint, node, log) };
}
