import type { RuntimeConfig } from '../runtimes/index.js';

export const ALLOCATION_MODES = ['plugin', 'dra', 'mixed'] as const;
export type AllocationMode = (typeof ALLOCATION_MODES)[number];

/** Places of the kubelet's record of claims. */
export interface KubeletClaimsConfig {
  /** The kubelet's plugins_registry directory. */
  readonly pluginRegistryPath: string;
  /** Mount point of the host's file system, or of its /usr. */
  readonly hostRoot: string;
}

/** The flags of the agent that concern resource claims. */
export interface ClaimsConfig extends KubeletClaimsConfig, RuntimeConfig {
  /** How pods get GPUs: by the device plugin, by resource claims, or some GPUs by each. */
  readonly allocation: AllocationMode;
  /** UUIDs of the GPUs that `mixed` assigns to claims. */
  readonly draGpus: ReadonlySet<string>;
  /** Whether pods are evicted from a failed GPU. */
  readonly draEvictFailed: boolean;
  /** Directory of the DRA driver's socket. */
  readonly draPath: string;
  /** Directory of the CDI specifications. */
  readonly cdiPath: string;
  readonly nodeName: string;
  /** Null: the service account of the agent's pod. */
  readonly kubeconfig: string | null;
  readonly allocationCheckPeriodMs: number;
  readonly virtualManagerPath: string;
}
