import type { Condition } from '../condition.js';
import { versionOf, type KubeObject } from '../object.js';
import type { WrittenAmounts } from '../amounts.js';

/**
 * Status of an Allocation; an Allocation has no spec. Times are RFC 3339. Times that the next leader reads back have
 * milliseconds.
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

/** An Allocation as the API server returns it. */
export interface AllocationObject {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly version: number;
  readonly status: AllocationStatus;
}

/** Reads an Allocation; null for an object without name or uid. */
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
