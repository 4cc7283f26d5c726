import { MEMORY_CAPACITY } from '../../gpu/claims/claim-units.js';
import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type {
  AttributeValue,
  CounterSet,
  DeviceCapacity,
  DeviceTaint,
  PublishedDevice,
} from '../../gpu/claims/published-device.js';
import type { Counters } from '../../gpu/mig-partition.js';
import type { ObservedSlice, WantedSlice } from '../../gpu/claims/slice-plan.js';
import { list, record, text } from '../../kube/json.js';
import { wholeQuantity } from '../../manifests/quantity.js';

/** Builds the ResourceSlice object; `owner` is the Node, with which the slice is deleted. */
export function sliceObject(
  slice: WantedSlice,
  owner: { readonly name: string; readonly uid: string },
  resourceVersion: string | null,
): object {
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: {
      name: slice.name,
      ...(resourceVersion === null ? {} : { resourceVersion }),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: owner.name, uid: owner.uid, controller: true }],
    },
    spec: {
      driver: DRIVER_NAME,
      nodeName: owner.name,
      pool: { name: slice.pool, generation: slice.generation, resourceSliceCount: slice.sliceCount },
      // A slice may have one of them only.
      ...(slice.counterSets.length === 0
        ? { devices: slice.devices.map(deviceObject) }
        : { sharedCounters: slice.counterSets.map(({ name, counters }) => ({ name, counters: amounts(counters) })) }),
    },
  };
}

function amounts(counters: Counters): object {
  return Object.fromEntries(Object.entries(counters).map(([name, value]) => [name, { value: String(value) }]));
}

function deviceObject({ name, attributes, capacity, shared, taints, consumes }: PublishedDevice): object {
  return {
    name,
    attributes,
    capacity: Object.fromEntries(Object.entries(capacity).map(([key, entry]) => [key, capacityObject(key, entry)])),
    ...(consumes === undefined
      ? {}
      : { consumesCounters: [{ counterSet: consumes.name, counters: amounts(consumes.counters) }] }),
    ...(shared ? { allowMultipleAllocations: true } : {}),
    ...(taints.length === 0
      ? {}
      : {
          taints: taints.map(({ key, value, effect, timeAdded }) => ({
            key,
            value,
            effect,
            ...(timeAdded === null ? {} : { timeAdded }),
          })),
        }),
  };
}

function capacityObject(key: string, { value, policy }: DeviceCapacity): object {
  const print = (amount: number): string => (key === MEMORY_CAPACITY ? `${amount / 2 ** 20}Mi` : String(amount));
  if (policy === null) return { value: print(value) };
  const [min, max, step] = [policy.min, policy.max, policy.step].map(print);
  return { value: print(value), requestPolicy: { default: print(policy.default), validRange: { min, max, step } } };
}

/**
 * Reads a ResourceSlice; null unless it belongs to this driver on this node. Invalid content is read as a different
 * device, so that the agent writes the slice again.
 */
export function readSlice(object: unknown, node: string): ObservedSlice | null {
  const [metadata, spec] = [record(record(object).metadata), record(record(object).spec)];
  if (typeof metadata.name !== 'string' || typeof metadata.uid !== 'string') return null;
  if (spec.driver !== DRIVER_NAME || spec.nodeName !== node) return null;
  const pool = record(record(spec).pool);
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: text(metadata.resourceVersion),
    pool: text(pool.name),
    generation: typeof pool.generation === 'number' ? pool.generation : 0,
    sliceCount: typeof pool.resourceSliceCount === 'number' ? pool.resourceSliceCount : 0,
    devices: list(spec.devices).map(readDevice),
    counterSets: list(spec.sharedCounters).map((set) => readCounters(record(set).name, set)),
  };
}

function readCounters(name: unknown, set: unknown): CounterSet {
  const counters = Object.entries(record(record(set).counters));
  return {
    name: text(name),
    counters: Object.fromEntries(counters.map(([counter, entry]) => [counter, amount(record(entry).value)])),
  };
}

function readDevice(device: unknown): PublishedDevice {
  const fields = record(device);
  const [consumed] = list(fields.consumesCounters);
  return {
    name: text(fields.name),
    attributes: record(record(device).attributes) as Readonly<Record<string, AttributeValue>>,
    capacity: Object.fromEntries(
      Object.entries(record(record(device).capacity)).map(([key, entry]) => [key, readCapacity(entry)]),
    ),
    shared: fields.allowMultipleAllocations === true,
    ...(consumed === undefined ? {} : { consumes: readCounters(record(consumed).counterSet, consumed) }),
    taints: list(fields.taints).map((taint): DeviceTaint => {
      const { key, value, effect, timeAdded } = record(taint);
      return {
        key: text(key),
        value: text(value),
        effect: effect === 'NoExecute' ? 'NoExecute' : 'NoSchedule',
        timeAdded: typeof timeAdded === 'string' ? timeAdded : null,
      };
    }),
  };
}

function readCapacity(entry: unknown): DeviceCapacity {
  const policy = record(record(entry).requestPolicy);
  const range = record(record(policy).validRange);
  const value = amount(record(entry).value);
  if (policy.default === undefined) return { value, policy: null };
  return {
    value,
    policy: {
      default: amount(policy.default),
      min: amount(range.min),
      max: amount(range.max),
      step: amount(range.step),
    },
  };
}

/** -1 for anything but a whole amount, which equals no published amount. */
function amount(value: unknown): number {
  return (typeof value === 'string' || typeof value === 'number' ? wholeQuantity(value) : null) ?? -1;
}
