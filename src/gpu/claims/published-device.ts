import type { Gpu, MigInstance } from '../gpu.js';
import {
  countersOf,
  countersOfGpu,
  placesOf,
  type Counters,
  type FoundInstance,
  type PartitionableGpu,
} from '../mig-partition.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import { subTopology, type Topology } from '../topology/topology.js';
import { CORES_CAPACITY, MEMORY_CAPACITY } from './claim-units.js';
import { LINK_GROUP_SIZES, linkDomains, linkGroups, takingOrder } from './linked-sets.js';
import { deviceName, deviceNameOf, HEALTH_TAINT_KEY } from './names.js';

/** A GPU with the attributes that are only published. */
export interface PublishedGpu extends Gpu {
  /** Model name as in the node's label: `H200`. */
  readonly modelName: string;
  /** Such as `9.0`; null if the driver does not report it. */
  readonly computeCapability: string | null;
  /** PCIe root complex, such as `pci0000:3a`; null if unknown. */
  readonly pcieRoot: string | null;
  /** Why no new container may use it; null for a healthy GPU. */
  readonly illness: { readonly status: string; readonly evict: boolean } | null;
}

/** A GPU that the agent divides, with its instances that somebody else created. */
export interface PublishedPartition extends PartitionableGpu<PublishedGpu> {
  readonly foreign: readonly FoundInstance[];
}

export interface PublishedNode {
  /** Position i of `topology` is `gpus[i]`. */
  readonly gpus: readonly PublishedGpu[];
  readonly topology: Topology;
  /** MIG instances are given whole. */
  readonly wholeInstances: boolean;
  /** GPUs that the agent divides. */
  readonly divided: readonly PublishedPartition[];
  readonly driverVersion: string | null;
  /** 1000 x major + 10 x minor. */
  readonly cudaVersion: number | null;
}

export type AttributeValue =
  { readonly string: string } | { readonly int: number } | { readonly bool: boolean } | { readonly version: string };

/** A device of a ResourceSlice. */
export interface PublishedDevice {
  readonly name: string;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly capacity: Readonly<Record<string, DeviceCapacity>>;
  /** Whether several claims may share it, each with part of its capacity. */
  readonly shared: boolean;
  readonly taints: readonly DeviceTaint[];
  /** What it takes of a counter set of the pool; absent: nothing. */
  readonly consumes?: CounterSet;
}

/** The counters of a GPU that the agent divides, or what a device takes of them. */
export interface CounterSet {
  readonly name: string;
  readonly counters: Counters;
}

/** What the slices of a node's pool hold. */
export interface PublishedPool {
  readonly devices: readonly PublishedDevice[];
  readonly counterSets: readonly CounterSet[];
}

/** An amount in cores or bytes. */
export interface DeviceCapacity {
  readonly value: number;
  /**
   * Requests may ask for parts in steps; a request without an amount gets `default`. Null: only the whole amount is
   * allocated.
   */
  readonly policy: {
    readonly default: number;
    readonly min: number;
    readonly max: number;
    readonly step: number;
  } | null;
}

export interface DeviceTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: 'NoSchedule' | 'NoExecute';
  /** When the API server stored it first; null for a new taint. */
  readonly timeAdded: string | null;
}

/** Features of a device that the API server stores; it drops the fields of disabled features. */
export interface KeptFeatures {
  /** Parts of a GPU: `allowMultipleAllocations` and request policies. */
  readonly shares: boolean;
  readonly taints: boolean;
  /** Counter sets, and devices that take from them. */
  readonly counters: boolean;
}

export const ALL_FEATURES: KeptFeatures = { shares: true, taints: true, counters: true };

const MAX_STRING = 64;

/**
 * The devices of a node, in the order in which they are best taken: the scheduler takes the first that fits.
 * `isOffered` selects the GPUs in claim mode. If the API server drops taints, unhealthy GPUs are left out.
 */
export function publishedDevices(
  node: PublishedNode,
  isOffered: (gpuUuid: string) => boolean,
  features: KeptFeatures = ALL_FEATURES,
): PublishedDevice[] {
  const whole = [...node.gpus.keys()].filter((position) => node.gpus[position]?.instance === undefined);
  const topology = subTopology(node.topology, whole);
  const groups = LINK_GROUP_SIZES.map((count) => [count, linkGroups(topology, count)] as const);
  const domains = linkDomains(topology);
  const published = (gpu: PublishedGpu | undefined): gpu is PublishedGpu =>
    gpu !== undefined && isOffered(gpu.uuid) && (gpu.illness === null || features.taints);
  const gpus = takingOrder(topology).flatMap((at) => {
    const gpu = node.gpus[whole[at] ?? -1];
    if (!published(gpu)) return [];
    const links: [string, AttributeValue][] = groups.flatMap(([count, of]) => group(`linkGroup${count}`, of[at]));
    return [deviceOf(node, gpu, [...links, ...group('linkDomain', domains[at])], features)];
  });
  // The smallest first: larger ones serve more claims.
  const instances = node.gpus
    .filter((gpu) => gpu.instance !== undefined && gpu.instance.placement === undefined && published(gpu))
    .sort((a, b) => a.memoryBytes - b.memoryBytes || a.index - b.index);
  const shares = features.shares && !node.wholeInstances;
  const places = features.counters
    ? node.divided.flatMap((one) => (isOffered(one.gpu.uuid) ? placeDevices(node, one, features) : []))
    : [];
  return [
    ...gpus,
    ...instances.map((gpu) => deviceOf(node, gpu, instanceAttributes(gpu), { ...features, shares })),
    ...places,
  ];
}

/** The counter sets of the GPUs that the agent divides; an ill GPU keeps its set, since claims hold some of it. */
export function publishedCounterSets(
  { divided }: Pick<PublishedNode, 'divided'>,
  { counters }: KeptFeatures = ALL_FEATURES,
): CounterSet[] {
  if (!counters) return [];
  return divided.map((one) => ({
    name: deviceName(one.gpu.uuid),
    counters: countersOfGpu(one, (instance) => one.foreign.includes(instance)),
  }));
}

/** A device for each place at which an instance can be created; it is ill if the instance that is there is. */
function placeDevices(node: PublishedNode, divided: PublishedPartition, features: KeptFeatures): PublishedDevice[] {
  const { gpu } = divided;
  const made = new Map(node.gpus.map((one) => [deviceNameOf(one), one]));
  return placesOf(divided).flatMap(({ profile, start }) => {
    const { id: profileId, name, memoryBytes, multiprocessors } = profile;
    const instance: MigInstance = {
      profile: name,
      parentUuid: gpu.uuid,
      // Unknown before it is created, and not published.
      gpuInstance: 0,
      computeInstance: 0,
      multiprocessors,
      placement: { profileId, start },
    };
    const illness = gpu.illness ?? made.get(deviceNameOf({ ...gpu, instance }))?.illness ?? null;
    if (illness !== null && !features.taints) return [];
    const described = { ...gpu, memoryBytes, instance, illness };
    const device = deviceOf(node, described, instanceAttributes(described), { ...features, shares: false });
    const { uuid: _, ...attributes } = device.attributes;
    return {
      ...device,
      attributes,
      consumes: { name: deviceName(gpu.uuid), counters: countersOf(profile, start) },
    };
  });
}

function instanceAttributes({ instance }: PublishedGpu): [string, AttributeValue][] {
  if (instance === undefined) return [];
  return [
    ['profile', { string: instance.profile }],
    ['parentUUID', { string: instance.parentUuid }],
    ...group('multiprocessors', instance.multiprocessors),
  ];
}

function group(name: string, number: number | null | undefined): [string, AttributeValue][] {
  return number === null || number === undefined ? [] : [[name, { int: number }]];
}

function deviceOf(
  { driverVersion, cudaVersion }: PublishedNode,
  gpu: PublishedGpu,
  links: readonly [string, AttributeValue][],
  features: KeptFeatures,
): PublishedDevice {
  const text = (name: string, value: string | null): [string, AttributeValue][] =>
    value === null || value === '' ? [] : [[name, { string: value.slice(0, MAX_STRING) }]];
  const version = (name: string, value: string | null): [string, AttributeValue][] => {
    const semantic = semanticVersion(value);
    return semantic === null ? [] : [[name, { version: semantic }]];
  };
  const blocks = memoryBlocks(gpu.memoryBytes);
  const cuda =
    cudaVersion === null ? null : `${Math.floor(cudaVersion / 1000)}.${Math.floor((cudaVersion % 1000) / 10)}`;
  const attributes: [string, AttributeValue][] = [
    ['type', { string: gpu.instance === undefined ? 'gpu' : 'mig' }],
    ...text('uuid', gpu.uuid),
    ...text('model', gpu.modelName),
    ...text('productName', gpu.model),
    ...text('architecture', architectureOf(gpu.computeCapability)),
    ...version('cudaComputeCapability', gpu.computeCapability),
    ...version('driverVersion', driverVersion),
    ...version('cudaDriverVersion', cuda),
    ['index', { int: gpu.index }],
    ['memoryBlocks', { int: blocks }],
    ...links,
    ...text('resource.kubernetes.io/pciBusID', shortBusId(gpu.pciBusId)),
    ...text('resource.kubernetes.io/pcieRoot', gpu.pcieRoot),
    ...(gpu.numaNode === null
      ? []
      : ([['resource.kubernetes.io/numaNode', { int: gpu.numaNode }]] as [string, AttributeValue][])),
  ];
  return {
    name: deviceNameOf(gpu),
    attributes: Object.fromEntries(attributes),
    capacity: {
      [CORES_CAPACITY]: capacity(CORES_PER_GPU, 1, features),
      [MEMORY_CAPACITY]: capacity(blocks * MEMORY_BLOCK_BYTES, MEMORY_BLOCK_BYTES, features),
    },
    shared: features.shares,
    taints:
      gpu.illness === null || !features.taints
        ? []
        : [
            {
              key: HEALTH_TAINT_KEY,
              value: gpu.illness.status,
              effect: gpu.illness.evict ? 'NoExecute' : 'NoSchedule',
              timeAdded: null,
            },
          ],
  };
}

function capacity(value: number, step: number, { shares }: KeptFeatures): DeviceCapacity {
  return { value, policy: shares ? { default: value, min: step, max: value, step } : null };
}

/** A semantic version without leading zeros: `580.95.5` for `580.95.05`. Null for a text without a number. */
export function semanticVersion(text: string | null): string | null {
  const [, major, minor = '0', patch = '0'] = /^(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?/.exec(text ?? '') ?? [];
  return major === undefined ? null : [major, minor, patch].map(Number).join('.');
}

const ARCHITECTURES: readonly (readonly [number, string])[] = [
  [10, 'Blackwell'],
  [9, 'Hopper'],
  [8.9, 'Ada Lovelace'],
  [8, 'Ampere'],
  [7.5, 'Turing'],
  [7, 'Volta'],
  [6, 'Pascal'],
  [5, 'Maxwell'],
];

function architectureOf(computeCapability: string | null): string | null {
  const capability = Number(computeCapability ?? NaN);
  return ARCHITECTURES.find(([from]) => capability >= from)?.[1] ?? null;
}

/** The bus id in the form of other drivers: `0000:3b:00.0` for `00000000:3B:00.0`. */
function shortBusId(pciBusId: string): string {
  return pciBusId.toLowerCase().replace(/^0000(?=[0-9a-f]{4}:)/, '');
}
