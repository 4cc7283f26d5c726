import { createHash } from 'node:crypto';
import { DRIVER_NAME, poolName } from './names.js';
import {
  ALL_FEATURES,
  type CounterSet,
  type DeviceTaint,
  type KeptFeatures,
  type PublishedDevice,
  type PublishedPool,
} from './published-device.js';

/** The API allows this many devices in a slice if one of them has a taint or takes from counters. */
const DEVICES_PER_SLICE = 64;
/** A slice holds devices, or at most this many counter sets. */
const COUNTER_SETS_PER_SLICE = 8;
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
  readonly counterSets: readonly CounterSet[];
}

/** One slice as it should be. */
export interface WantedSlice {
  readonly name: string;
  readonly pool: string;
  readonly generation: number;
  readonly sliceCount: number;
  readonly devices: readonly PublishedDevice[];
  readonly counterSets: readonly CounterSet[];
}

export interface SlicePlan {
  /** Slices to write; each replaces the observed slice of its name. */
  readonly writes: readonly { readonly slice: WantedSlice; readonly replaces: ObservedSlice | null }[];
  readonly removals: readonly ObservedSlice[];
}

/**
 * What each slice of a pool holds: counter sets first, so that the API server's answer tells whether it stores them.
 * One empty slice if there are no devices, so that the pool is known to be empty.
 */
function parts({ devices, counterSets }: PublishedPool): PublishedPool[] {
  return [
    ...chunks(counterSets, COUNTER_SETS_PER_SLICE).map((sets) => ({ devices: [], counterSets: sets })),
    ...(devices.length === 0 ? [{ devices: [], counterSets: [] }] : []),
    ...chunks(devices, DEVICES_PER_SLICE).map((list) => ({ devices: list, counterSets: [] })),
  ];
}

function chunks<T>(list: readonly T[], size: number): (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));
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
 * The writes that bring the API server's slices to this content. A single changed slice is updated in place. If
 * several slices or their number change, all get a new generation: the scheduler ignores a pool until it is complete
 * again.
 */
export function planSlices(node: string, wanted: PublishedPool, observed: readonly ObservedSlice[]): SlicePlan {
  const pool = poolName(node);
  const lists = parts(wanted);
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
      !sameContent(list, known)
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
      devices: list.devices.map((device) => keepTimes(device, replaces)),
      counterSets: list.counterSets,
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

/** True when both have equal devices and counter sets in the same order; the times of taints are ignored. */
export function sameContent(a: PublishedPool, b: PublishedPool): boolean {
  const text = ({ devices, counterSets }: PublishedPool): string =>
    JSON.stringify([devices.map(canonical), counterSets.map(canonicalSet)]);
  return text(a) === text(b);
}

const sorted = <T>(record: Readonly<Record<string, T>>): (readonly [string, T])[] =>
  Object.entries(record).sort(([x], [y]) => (x < y ? -1 : 1));

const canonicalSet = ({ name, counters }: CounterSet): unknown => [name, sorted(counters)];

function canonical({ name, attributes, capacity, shared, taints, consumes }: PublishedDevice): unknown {
  const amounts = sorted(capacity).map(([key, { value, policy }]) => [
    key,
    value,
    policy === null ? null : [policy.default, policy.min, policy.max, policy.step],
  ]);
  const marks = taints.map(({ key, value, effect }) => [key, value, effect]);
  return [name, sorted(attributes), amounts, shared, marks, consumes === undefined ? null : canonicalSet(consumes)];
}

/** The features that the API server kept from the last write; a feature that was not sent counts as stored. */
export function keptFeatures(sent: PublishedPool, stored: PublishedPool): KeptFeatures {
  const byName = new Map(stored.devices.map((device) => [device.name, device]));
  let { shares, taints } = ALL_FEATURES;
  let counters = stored.counterSets.length === sent.counterSets.length;
  for (const device of sent.devices) {
    const kept = byName.get(device.name);
    if (device.shared && kept?.shared !== true) shares = false;
    if (device.taints.length > 0 && (kept?.taints ?? []).length === 0) taints = false;
    if (device.consumes !== undefined && kept?.consumes === undefined) counters = false;
  }
  return { shares, taints, counters };
}
