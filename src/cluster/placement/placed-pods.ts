import type { Charge, ContainerDemand } from '../../gpu/pods/pod-demand.js';
import { place } from '../../gpu/placement/place.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';
import { chargeOf, gpusOf, placePod, type ContainerGpus, type PodPlacement } from '../../gpu/pods/pod-placement.js';
import { slotsOf, type ClusterNode, type NodeShape } from './node.js';

/** A pod on a node, as placement needs it. */
export interface BoundPod {
  readonly uid: string;
  readonly nodeName: string;
  readonly demand: Demand;
  /** Whether its init containers have ended, so that capacity that only they requested is free again. Absent: no. */
  readonly initEnded?: boolean;
  /** GPUs that its annotations name; null if they name none or are invalid. */
  readonly gpus: readonly ContainerGpus[] | null;
}

/**
 * How the GPUs of a pod are known: `named`: its annotations name them; `decided`: this process chose them; `concluded`:
 * placement as the node agent would do it; `nowhere`: no GPU had room, so no GPU is charged.
 */
export type PlacementSource = 'named' | 'decided' | 'concluded' | 'nowhere';

/** A pod on a node, with the GPUs that it is charged. */
export interface PlacedPod {
  readonly pod: BoundPod;
  readonly source: PlacementSource;
  readonly charges: readonly Charge[];
  /** Empty if the source is `nowhere` or the node is unknown. */
  readonly gpus: readonly ContainerGpus[];
}

/** The GPUs of a pod on a node in its present state, from its annotations or else by placement. */
export function placedPodOn(node: ClusterNode, pod: BoundPod): PlacedPod {
  const { shape } = node;
  const named = pod.gpus === null ? null : namedCharges(node, pod, pod.gpus);
  if (named !== null) return { pod, source: 'named', charges: named, gpus: pod.gpus ?? [] };
  const demand = pod.initEnded === true ? { ...pod.demand, init: [] } : pod.demand;
  const placed = placePod(shape, slotsOf(shape, node.freeFor(demand)), demand);
  if (!placed.ok) return { pod, source: 'nowhere', charges: [], gpus: [] };
  const charges = namedCharges(node, pod, placed.containers) ?? placed.charges;
  return { pod, source: 'concluded', charges, gpus: placed.containers };
}

/** A pod as this process decided to place it. */
export function decidedPod(pod: BoundPod, placed: Extract<PodPlacement, { ok: true }>): PlacedPod {
  return { pod, source: 'decided', charges: placed.charges, gpus: placed.containers };
}

/** A pod whose GPUs are known already, and whose init containers have ended. */
export function withoutInit(node: ClusterNode, placedPod: PlacedPod, pod: BoundPod): PlacedPod {
  const charges = namedCharges(node, pod, placedPod.gpus);
  return { ...placedPod, pod, charges: charges ?? placedPod.charges };
}

/** Null when the annotations do not match the request: too few GPUs, an unknown GPU, or a container without GPUs. */
function namedCharges(node: ClusterNode, pod: BoundPod, gpus: readonly ContainerGpus[]): readonly Charge[] | null {
  const { shape } = node;
  const charges: Charge[] = [];
  for (const wanted of pod.demand.containers) {
    const named = gpus.find(({ container }) => container === wanted.container);
    const positions = named === undefined ? [] : positionsOf(shape, named);
    if (positions.length !== gpusOf(wanted) || positions.includes(-1)) return null;
    charges.push(...positions.map((position) => chargeOf(shape, position, mayGet(shape, position, wanted))));
  }
  return pod.initEnded === true ? charges : [...charges, ...initCharges(node, pod.demand, charges)];
}

/** What a container has or may get of its GPU: a resize counts where the node allows it and the GPU has the amounts. */
function mayGet({ allowsResize, gpus }: NodeShape, position: number, wanted: ContainerDemand): ContainerDemand {
  const { resize } = wanted;
  const isPossible = resize !== undefined && resize.memoryBytes <= (gpus[position]?.gpu.memoryBytes ?? 0);
  return allowsResize === true && isPossible ? { ...wanted, ...resize } : wanted;
}

/** The positions of named GPUs: by UUID, if both sides know them. -1: the node has no such GPU. */
function positionsOf(shape: NodeShape, { indexes, uuids }: ContainerGpus): readonly number[] {
  return uuids === undefined || shape.gpus.every(({ gpu }) => gpu.uuid === '')
    ? indexes.map((index) => shape.gpus.findIndex(({ gpu }) => gpu.index === index))
    : uuids.map((uuid) => shape.gpus.findIndex(({ gpu }) => gpu.uuid === uuid));
}

/**
 * Charges of init containers beyond the containers after them, until they have ended. Annotations do not name their
 * GPUs: they use the GPUs of the containers, and if they ask for more, the GPUs that the node agent would add.
 */
function initCharges(node: ClusterNode, demand: Demand, charges: readonly Charge[]): readonly Charge[] {
  const { shape } = node;
  const own = new Map<number, Charge>();
  for (const charge of charges) own.set(charge.position, sum(charge, own.get(charge.position)));
  const extra = new Map<number, Charge>();
  for (const wanted of demand.init) {
    const must = [...own.keys()].slice(0, gpusOf(wanted));
    for (const position of positionsFor(node, demand, wanted, must, own)) {
      const beyond = difference(chargeOf(shape, position, wanted), own.get(position));
      const known = extra.get(position);
      // Init containers run one after another, so the largest request counts.
      extra.set(position, {
        ...beyond,
        cores: Math.max(beyond.cores, known?.cores ?? 0),
        memoryBytes: Math.max(beyond.memoryBytes, known?.memoryBytes ?? 0),
      });
    }
  }
  return [...extra.values()].filter(({ cores, memoryBytes }) => cores > 0 || memoryBytes > 0);
}

/** The positions of an init container: `must`, and if these are too few, the ones that the node agent would add. */
function positionsFor(
  node: ClusterNode,
  { selection }: Demand,
  wanted: ContainerDemand,
  must: readonly number[],
  own: ReadonlyMap<number, Charge>,
): readonly number[] {
  const { shape } = node;
  const indexes = must.map((position) => shape.gpus[position]?.gpu.index ?? -1);
  const slots = slotsOf(shape, node.freeFor({ selection })).map((slot, position) =>
    own.has(position) ? { ...slot, freeCores: CORES_PER_GPU, freeMemoryBytes: slot.gpu.memoryBytes } : slot,
  );
  const request = { cores: wanted.cores, memoryBytes: wanted.memoryBytes, gpus: wanted.gpus, selection };
  const placed = place(shape.topology, slots, request, { mustInclude: indexes });
  if (!placed.ok) return must;
  return placed.gpus.map(({ index }) => shape.gpus.findIndex(({ gpu }) => gpu.index === index));
}

function sum(a: Charge, b: Charge | undefined): Charge {
  return { ...a, cores: a.cores + (b?.cores ?? 0), memoryBytes: a.memoryBytes + (b?.memoryBytes ?? 0) };
}

function difference(a: Charge, b: Charge | undefined): Charge {
  return {
    ...a,
    cores: Math.max(0, a.cores - (b?.cores ?? 0)),
    memoryBytes: Math.max(0, a.memoryBytes - (b?.memoryBytes ?? 0)),
  };
}
