import { createHash } from 'node:crypto';
import { DRIVER_NAME, poolName } from './names.js';
import { ALL_FEATURES, type DeviceTaint, type KeptFeatures, type PublishedDevice } from './published-device.js';

/** The API allows this many devices in a slice if one of them has a taint. */
const DEVICES_PER_SLICE = 64;
const MAX_NAME = 253;

/** A ResourceSlice of this driver as the API server has it. */
export interface ObservedSlice {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly pool: string;
  readonly generation: number;
  readonly sliceCount: number;
  readonly devices: readonly PublishedDevice[];
}

/** One slice as it should be. */
export interface WantedSlice {
  readonly name: string;
  readonly pool: string;
  readonly generation: number;
  readonly sliceCount: number;
  readonly devices: readonly PublishedDevice[];
}

export interface SlicePlan {
  /** Slices to write; each replaces the observed slice of its name. */
  readonly writes: readonly { readonly slice: WantedSlice; readonly replaces: ObservedSlice | null }[];
  readonly removals: readonly ObservedSlice[];
}

/**
 * The device lists of a pool's slices; one empty slice if there are no devices, so that the pool is known to be empty.
 */
function parts(devices: readonly PublishedDevice[]): PublishedDevice[][] {
  const count = Math.max(1, Math.ceil(devices.length / DEVICES_PER_SLICE));
  return Array.from({ length: count }, (_, at) => devices.slice(at * DEVICES_PER_SLICE, (at + 1) * DEVICES_PER_SLICE));
}

/**
 * Name of slice `at`. Names sort in slice order, and depend only on the node, so that a repeated write after a lost
 * answer creates no second slice.
 */
export function sliceName(node: string, at: number): string {
  const name = `${String(at).padStart(5, '0')}-${DRIVER_NAME}-${node}`;
  if (name.length <= MAX_NAME) return name;
  const hash = createHash('sha256').update(node).digest('hex').slice(0, 16);
  return `${String(at).padStart(5, '0')}-${DRIVER_NAME}-${hash}`;
}

/**
 * The writes that bring the API server's slices to these devices. A single changed slice is updated in place. If
 * several slices or their number change, all get a new generation: the scheduler ignores a pool until it is complete
 * again.
 */
export function planSlices(
  node: string,
  devices: readonly PublishedDevice[],
  observed: readonly ObservedSlice[],
): SlicePlan {
  const pool = poolName(node);
  const lists = parts(devices);
  const byName = new Map(observed.map((slice) => [slice.name, slice]));
  const names = lists.map((_, at) => sliceName(node, at));
  const removals = observed.filter(({ name }) => !names.includes(name));
  const newest = observed.reduce((most, { generation }) => Math.max(most, generation), 0);
  const differs = lists.map((list, at) => {
    const known = byName.get(names[at] as string);
    return (
      known === undefined ||
      known.pool !== pool ||
      known.sliceCount !== lists.length ||
      known.generation !== newest ||
      !sameDevices(list, known.devices)
    );
  });
  const changes = differs.filter(Boolean).length;
  if (changes === 0 && removals.length === 0) return { writes: [], removals: [] };
  const inPlace =
    changes <= 1 && removals.length === 0 && names.every((name) => byName.get(name)?.generation === newest);
  const generation = inPlace ? newest : newest + 1;
  const writes = lists.flatMap((list, at) => {
    const name = names[at] as string;
    const replaces = byName.get(name) ?? null;
    if (inPlace && differs[at] !== true) return [];
    const slice = {
      name,
      pool,
      generation,
      sliceCount: lists.length,
      devices: list.map((device) => keepTimes(device, replaces)),
    };
    return [{ slice, replaces }];
  });
  return { writes, removals };
}

/** A taint that stays keeps its time of addition. */
function keepTimes(device: PublishedDevice, before: ObservedSlice | null): PublishedDevice {
  const known = before?.devices.find(({ name }) => name === device.name)?.taints ?? [];
  const dated = device.taints.map((taint): DeviceTaint => {
    const same = known.find(
      ({ key, value, effect }) => key === taint.key && value === taint.value && effect === taint.effect,
    );
    return { ...taint, timeAdded: same?.timeAdded ?? null };
  });
  return { ...device, taints: dated };
}

/** True when both lists have equal devices in the same order; the times of taints are ignored. */
export function sameDevices(a: readonly PublishedDevice[], b: readonly PublishedDevice[]): boolean {
  return JSON.stringify(a.map(canonical)) === JSON.stringify(b.map(canonical));
}

function canonical({ name, attributes, capacity, shared, taints }: PublishedDevice): unknown {
  const sorted = <T>(record: Readonly<Record<string, T>>): (readonly [string, T])[] =>
    Object.entries(record).sort(([x], [y]) => (x < y ? -1 : 1));
  const amounts = sorted(capacity).map(([key, { value, policy }]) => [
    key,
    value,
    policy === null ? null : [policy.default, policy.min, policy.max, policy.step],
  ]);
  return [name, sorted(attributes), amounts, shared, taints.map(({ key, value, effect }) => [key, value, effect])];
}

/** The features that the API server kept from the last write; a feature that was not sent counts as stored. */
export function keptFeatures(sent: readonly PublishedDevice[], stored: readonly PublishedDevice[]): KeptFeatures {
  const byName = new Map(stored.map((device) => [device.name, device]));
  let { shares, taints } = ALL_FEATURES;
  for (const device of sent) {
    const kept = byName.get(device.name);
    if (device.shared && kept?.shared !== true) shares = false;
    if (device.taints.length > 0 && (kept?.taints ?? []).length === 0) taints = false;
  }
  return { shares, taints };
}
