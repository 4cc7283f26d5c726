import type { AllocationResult, ResourceClaim } from '../gpu/claims/resource-claim.js';
import { list, record, text, texts, type JsonRecord } from './json.js';
import { wholeQuantity } from '../manifests/quantity.js';

/** The annotation of claims that were made from a template; every user of the namespace can write it. */
const NAME_IN_POD_KEY = 'resource.kubernetes.io/pod-claim-name';
/** What names in a pod's `spec.resourceClaims` are made of. */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * Reads a ResourceClaim of resource.k8s.io/v1; null for any other object. An invalid result or amount makes the whole
 * object invalid: a claim must get exactly what the scheduler allocated.
 */
export function readResourceClaim(object: unknown): ResourceClaim | null {
  const metadata = record(record(object).metadata);
  const status = record(record(object).status);
  const [uid, namespace, name] = [text(metadata.uid), text(metadata.namespace), text(metadata.name)];
  if (uid === '' || name === '') return null;
  const isAllocated = status.allocation !== undefined && status.allocation !== null;
  const allocation = isAllocated ? readAllocation(status.allocation) : null;
  if (isAllocated && allocation === null) return null;
  return {
    uid,
    namespace,
    name,
    allocation,
    pods: list(status.reservedFor).flatMap((entry) =>
      text(record(entry).resource) === 'pods' ? [{ uid: text(record(entry).uid), name: text(record(entry).name) }] : [],
    ),
    isOfPod: list(metadata.ownerReferences).some((owner) => text(record(owner).kind) === 'Pod'),
    nameInPod: DNS_LABEL.exec(texts(metadata.annotations)[NAME_IN_POD_KEY] ?? '')?.[0] ?? null,
    annotations: new Map(Object.entries(texts(metadata.annotations)).filter(([key]) => key.startsWith('tencent.com/'))),
  };
}

function readAllocation(allocation: unknown): ResourceClaim['allocation'] {
  const devices = record(record(allocation).devices);
  const results = list(devices.results).map(readResult);
  if (results.some((result) => result === null)) return null;
  return {
    results: results.filter((result) => result !== null),
    configs: list(devices.config).map((entry) => ({
      source: text(record(entry).source) === 'FromClass' ? 'FromClass' : 'FromClaim',
      requests: list(record(entry).requests).filter((request): request is string => typeof request === 'string'),
      driver: text(record(record(entry).opaque).driver),
      parameters: record(record(entry).opaque).parameters,
    })),
  };
}

function readResult(entry: unknown): AllocationResult | null {
  const { request, driver, pool, device, shareID, adminAccess, consumedCapacity } = record(entry);
  const names = [request, driver, pool, device].map(text);
  if (names.includes('')) return null;
  const consumed = consumedCapacity === undefined ? null : readCapacity(record(consumedCapacity));
  if (consumedCapacity !== undefined && consumed === null) return null;
  const [requestName = '', driverName = '', poolName = '', deviceName = ''] = names;
  return {
    request: requestName,
    driver: driverName,
    pool: poolName,
    device: deviceName,
    shareId: text(shareID) || null,
    adminAccess: adminAccess === true,
    consumedCapacity: consumed,
  };
}

function readCapacity(capacity: JsonRecord): ReadonlyMap<string, number> | null {
  const amounts = new Map<string, number>();
  for (const [key, value] of Object.entries(capacity)) {
    const amount = typeof value === 'string' || typeof value === 'number' ? wholeQuantity(value) : null;
    if (amount === null) return null;
    amounts.set(key, amount);
  }
  return amounts;
}
