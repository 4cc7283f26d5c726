import type { ContainerRef } from './allocation.js';

/** An entry of the checkpoint of tkestack gpu-manager: it knows pods and device files, but no device ids. */
export interface OriginalAllocation {
  readonly podUid: string;
  readonly container: string;
  /** `/dev/nvidia0`, ... */
  readonly devicePaths: readonly string[];
  readonly cores: number;
  readonly memoryBytes: number;
}

/**
 * What a container holds that tkestack gpu-manager started, and that outlived the upgrade. The kubelet counts ids of
 * that plugin's format for it, which name no GPU; none of ours are held, so the ledger keeps its share from all others.
 * Our ids stay healthy all the same: the scheduler subtracts what the pod asked for from the node's allocatable
 * devices, and would subtract it twice from a node that offered fewer.
 */
export interface LegacyHolding {
  readonly container: ContainerRef;
  readonly cores: number;
  readonly memoryBlocks: number;
  readonly parts: readonly LegacyPart[];
  /** False when nothing tells which GPUs it has: its share is then kept free on every one. */
  readonly gpusKnown: boolean;
  /** Since when the kubelet does not name it; null while it does. */
  readonly missingSince: number | null;
}

/** What is kept from others on one GPU. */
export interface LegacyPart {
  readonly gpuUuid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
}
