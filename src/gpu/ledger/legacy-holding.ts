import type { ContainerRef } from './allocation.js';

/** An entry of the checkpoint of tkestack gpu-manager: it has pods and device files, but no device ids. */
export interface OriginalAllocation {
  readonly podUid: string;
  readonly container: string;
  /** `/dev/nvidia0`, ... */
  readonly devicePaths: readonly string[];
  readonly cores: number;
  readonly memoryBytes: number;
}

/**
 * The GPU share of a container that tkestack gpu-manager started and that outlived the upgrade. The kubelet counts ids
 * of that plugin's format for it, which name no GPU, so the ledger reserves its share. Our ids stay healthy all the
 * same: the scheduler subtracts the pod's request from the node's allocatable devices, and would subtract it twice from
 * a node that offered fewer.
 */
export interface LegacyHolding {
  readonly container: ContainerRef;
  readonly cores: number;
  readonly memoryBlocks: number;
  readonly parts: readonly LegacyPart[];
  /** False when the GPUs are unknown: the share is then reserved on every GPU. */
  readonly gpusKnown: boolean;
  /** Since when the kubelet does not name the container; null while it does. */
  readonly missingSince: number | null;
}

/** The reserved amounts on one GPU. */
export interface LegacyPart {
  readonly gpuUuid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
}
