import { INSTANCE_CLASS, SHARE_CLASS, WHOLE_CLASS } from '../gpu/claims/converted-request.js';
import { consumedOf } from '../gpu/claims/claim-units.js';
import { DRIVER_NAME } from '../gpu/claims/names.js';
import type { AllocationResult, ResourceClaim } from '../gpu/claims/resource-claim.js';
import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { readResourceClaim } from '../kube/claim-object.js';
import { record, time } from '../kube/json.js';
import { claimAmounts, deviceClassesOf } from '../manifests/claim-needs.js';
import { claimAsPod } from '../quota/internal.js';
import { ManifestReader } from '../manifests/manifest-reader.js';
import type { ClaimDevice, ClaimRow, SliceRow } from './rows.js';

/** The fields of a claim that the console keeps. */
export interface ClaimFacts {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdAtMs: number | null;
  readonly asks: ClaimRow['asks'];
  readonly isAllocated: boolean;
  /** Devices of this driver. */
  readonly results: readonly AllocationResult[];
  readonly pods: ResourceClaim['pods'];
}

const OWN_CLASSES: ReadonlySet<string> = new Set([WHOLE_CLASS, SHARE_CLASS, INSTANCE_CLASS]);

/** A claim that has devices of this driver or asks for them; null for any other object. */
export function claimFacts(object: unknown): ClaimFacts | null {
  const claim = readResourceClaim(object);
  if (claim === null) return null;
  const { uid, namespace, name, allocation, pods } = claim;
  const results = (allocation?.results ?? []).filter(({ driver }) => driver === DRIVER_NAME);
  const { asks, isOurs } = asksOf(object);
  if (allocation === null ? !isOurs : results.length === 0) return null;
  const createdAtMs = time(record(record(object).metadata).creationTimestamp);
  return { ...{ uid, namespace, name, createdAtMs, asks, results, pods }, isAllocated: allocation !== null };
}

/**
 * The requests of a claim. The claim is for this driver if it names a class of this driver, or requests cores of a
 * device in a class of the operator.
 */
function asksOf(object: unknown): { readonly asks: ClaimRow['asks']; readonly isOurs: boolean } {
  const reader = new ManifestReader();
  const { lookup } = claimAsPod(reader, object);
  const pod = { resourceClaims: [{ name: 'claim', resourceClaimTemplateName: 'claim' }] };
  const amounts = claimAmounts(reader, pod, 'spec', lookup, null);
  const classes = [...new Set(deviceClassesOf(reader, pod, lookup))].filter((name) => name !== '');
  return {
    asks: {
      classes,
      cores: amounts[CORE_RESOURCE] ?? 0,
      memoryBytes: (amounts[MEMORY_RESOURCE] ?? 0) * MEMORY_BLOCK_BYTES,
    },
    isOurs: amounts[CORE_RESOURCE] !== undefined || classes.some((name) => OWN_CLASSES.has(name)),
  };
}

/** Where a device is: the node of its pool, and the index of its GPU there. */
export type LocateDevice = (result: AllocationResult) => Pick<ClaimDevice, 'gpu'> & { readonly node: string | null };

/** The devices of a claim, as slices of the GPUs of nodes. */
export function devicesOf({ results }: ClaimFacts, locate: LocateDevice): readonly ClaimDevice[] {
  return results.map((result) => {
    const { node, gpu } = locate(result);
    const { cores, memoryBytes } = consumedOf(result);
    return {
      request: result.request,
      device: result.device,
      ...(node === null ? {} : { node }),
      ...{ gpu, cores, memoryBytes: memoryBytes ?? 0 },
    };
  });
}

/** The row of a claim; `why` is the scheduler's reason of a pod that uses the claim and waits, or null. */
export function claimRow(claim: ClaimFacts, devices: readonly ClaimDevice[], why: string | null): ClaimRow {
  const { uid, namespace, name, createdAtMs, asks, isAllocated, pods } = claim;
  const state = !isAllocated ? 'waiting' : pods.length === 0 ? 'allocated' : 'reserved';
  return {
    ...{ uid, namespace, name, state },
    ...(createdAtMs === null ? {} : { createdAtMs }),
    ...(isAllocated ? {} : { why: why ?? 'no pod uses it; the scheduler allocates a claim for the first pod' }),
    ...{ asks, devices, pods: pods.map((pod) => pod.name) },
  };
}

/** The slices that a pod has of a claim on its node. Until the claim has devices, the slice shows the request. */
export function slicesOfClaim(
  { name, asks, isAllocated }: ClaimFacts,
  devices: readonly ClaimDevice[],
  node: string | undefined,
): readonly SliceRow[] {
  if (!isAllocated)
    return [{ container: '', gpu: null, cores: asks.cores, memoryBytes: asks.memoryBytes, claim: name }];
  return devices.map(({ node: of, gpu, cores, memoryBytes }) => ({
    ...{ container: '', gpu: of !== undefined && of === node ? gpu : null, cores, memoryBytes, claim: name },
  }));
}
