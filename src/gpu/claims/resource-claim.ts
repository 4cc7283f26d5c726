/** The identity of a ResourceClaim, as the kubelet passes it. */
export interface ClaimRef {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** One device that the scheduler allocated to a claim. */
export interface AllocationResult {
  /** `main`, or `main/alternative` for an entry of a prioritized list. */
  readonly request: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly adminAccess: boolean;
  /** By capacity name; null if the whole device is allocated. */
  readonly consumedCapacity: ReadonlyMap<string, number> | null;
}

/** Opaque parameters for a driver. */
export interface AllocationConfig {
  readonly source: 'FromClass' | 'FromClaim';
  /** The main requests or alternatives that the parameters apply to; empty: all. */
  readonly requests: readonly string[];
  readonly driver: string;
  readonly parameters: unknown;
}

/** The fields of a ResourceClaim that the agent reads. */
export interface ResourceClaim extends ClaimRef {
  /** Null while the scheduler has not allocated devices. */
  readonly allocation: {
    readonly results: readonly AllocationResult[];
    readonly configs: readonly AllocationConfig[];
  } | null;
  /** Pods that the claim is reserved for. */
  readonly pods: readonly { readonly uid: string; readonly name: string }[];
  /** Whether it was made from a template for one pod, and ends with it. */
  readonly isOfPod: boolean;
  /** Its name in the pod's `spec.resourceClaims` if it was made from a template; null for any other claim. */
  readonly nameInPod: string | null;
  /** Annotations with a key of tencent.com. */
  readonly annotations: ReadonlyMap<string, string>;
}
