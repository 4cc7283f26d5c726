import type { Condition } from '../../kube/condition.js';
import { versionOf, type KubeObject } from '../object.js';
import type { WrittenAmounts } from '../../kube/amounts.js';

/**
 * Status of an Allocation: all that there is of one. Times are RFC 3339, with milliseconds where the next leader
 * reckons with them.
 */
export interface AllocationStatus {
  readonly hard?: WrittenAmounts;
  readonly reserved?: WrittenAmounts;
  readonly weight?: number;
  readonly deserved?: WrittenAmounts;
  readonly allocated?: WrittenAmounts;
  readonly pending?: WrittenAmounts;
  readonly dominantShare?: string;
  readonly overused?: readonly string[];
  readonly wantedSince?: string;
  readonly reclaimAt?: string;
  readonly reclaimedFor?: Readonly<Record<string, string>>;
  readonly conditions?: readonly Condition[];
}

/** An Allocation as the API server has it. */
export interface AllocationObject {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly version: number;
  readonly status: AllocationStatus;
}

/** Reads an Allocation. */
export function readAllocation(object: unknown): AllocationObject | null {
  const { metadata, status } = object as KubeObject;
  if (metadata?.name === undefined || metadata.uid === undefined) return null;
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion ?? '',
    version: versionOf(object as KubeObject),
    status: status ?? {},
  };
}
