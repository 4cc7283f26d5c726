/** Names a ResourceClaim, as the kubelet does. */
export interface ClaimRef {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** One device that the scheduler allocated to a claim. */
export interface AllocationResult {
  /** `main`, or `main/alternative` where a prioritized list was asked for. */
  readonly request: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly adminAccess: boolean;
  /** By name of the capacity; null where the device is given whole. */
  readonly consumedCapacity: ReadonlyMap<string, number> | null;
}

/** Opaque parameters for a driver. */
export interface AllocationConfig {
  readonly source: 'FromClass' | 'FromClaim';
  /** Main requests or alternatives that it is for; empty: all. */
  readonly requests: readonly string[];
  readonly driver: string;
  readonly parameters: unknown;
}

/** A ResourceClaim as far as it is looked at. */
export interface ResourceClaim extends ClaimRef {
  /** Null while the scheduler has not allocated devices. */
  readonly allocation: {
    readonly results: readonly AllocationResult[];
    readonly configs: readonly AllocationConfig[];
  } | null;
  /** Pods that the claim is reserved for. */
  readonly pods: readonly { readonly uid: string; readonly name: string }[];
  /** Those of tencent.com. */
  readonly annotations: ReadonlyMap<string, string>;
}
