import { createHash } from 'node:crypto';
import { DRIVER_NAME, poolName } from './names.js';
import { ALL_FEATURES, type DeviceTaint, type KeptFeatures, type PublishedDevice } from './published-device.js';

/** As many devices as a slice may hold when one of them has a taint. */
const DEVICES_PER_SLICE = 64;
const LONGEST_NAME = 253;

/** A ResourceSlice of ours as it is at the API server. */
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
  /** Slices to write, each in place of the observed one of its name. */
  readonly writes: readonly { readonly slice: WantedSlice; readonly replaces: ObservedSlice | null }[];
  readonly removals: readonly ObservedSlice[];
}

/** Device lists of the slices of a pool; one slice even without devices, so that the pool is known to be empty. */
function parts(devices: readonly PublishedDevice[]): PublishedDevice[][] {
  const count = Math.max(1, Math.ceil(devices.length / DEVICES_PER_SLICE));
  return Array.from({ length: count }, (_, at) => devices.slice(at * DEVICES_PER_SLICE, (at + 1) * DEVICES_PER_SLICE));
}

/**
 * Slices are taken in the order of their names. The name follows from the node, so that a lost answer makes no second
 * slice.
 */
export function sliceName(node: string, at: number): string {
  const name = `${String(at).padStart(5, '0')}-${DRIVER_NAME}-${node}`;
  if (name.length <= LONGEST_NAME) return name;
  const hash = createHash('sha256').update(node).digest('hex').slice(0, 16);
  return `${String(at).padStart(5, '0')}-${DRIVER_NAME}-${hash}`;
}

/**
 * What has to be written so that the API server has these devices. A single slice is changed in place. Where several
 * change, or their number does, all get a new generation: the scheduler ignores a pool until it is complete again.
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

/** A taint that stays keeps the time at which it was added. */
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

/** True when both lists say the same, in the same order; when a taint was added does not count. */
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

/** What the API server kept of what it was sent; a feature that was not sent counts as kept. */
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
