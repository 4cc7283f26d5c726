import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';
import { chargeOf, placePod, type ContainerGpus, type PodPlacement } from './pod-placement.js';
import { slotsOf, type Charge, type ClusterNode, type NodeShape } from './node.js';

/** A pod on a node, as far as placement needs to know it. */
export interface BoundPod {
  readonly uid: string;
  readonly nodeName: string;
  readonly demand: Demand;
  /** GPUs that its annotations name; null where they name none or cannot be trusted. */
  readonly gpus: readonly ContainerGpus[] | null;
}

/**
 * How it is known which GPUs a pod uses: its annotations name them; this process chose them; it was concluded, as the
 * node agent would choose; or no GPU had room, so that none is charged.
 */
export type BookingSource = 'named' | 'decided' | 'concluded' | 'nowhere';

export interface Booking {
  readonly pod: BoundPod;
  readonly source: BookingSource;
  readonly charges: readonly Charge[];
  /** Empty where the source is `nowhere` or the node is not known. */
  readonly gpus: readonly ContainerGpus[];
}

/** The GPUs of a pod on a node as it is now, from its annotations or else by placement. */
export function bookingOn(node: ClusterNode, pod: BoundPod): Booking {
  const { shape } = node;
  const named = pod.gpus === null ? null : namedCharges(shape, pod, pod.gpus);
  if (named !== null) return { pod, source: 'named', charges: named, gpus: pod.gpus ?? [] };
  const placed = placePod(shape, slotsOf(shape, node.free), pod.demand);
  if (!placed.ok) return { pod, source: 'nowhere', charges: [], gpus: [] };
  return { pod, source: 'concluded', charges: placed.charges, gpus: placed.containers };
}

/** A booking for a decision of this process. */
export function decidedBooking(pod: BoundPod, placed: Extract<PodPlacement, { ok: true }>): Booking {
  return { pod, source: 'decided', charges: placed.charges, gpus: placed.containers };
}

/** Null when the annotations do not fit the request: too few GPUs, a GPU that is not there, a container without any. */
function namedCharges(shape: NodeShape, pod: BoundPod, gpus: readonly ContainerGpus[]): Charge[] | null {
  const charges: Charge[] = [];
  for (const wanted of pod.demand.containers) {
    const indexes = gpus.find((named) => named.container === wanted.container)?.indexes ?? [];
    const positions = indexes.map((index) => shape.gpus.findIndex((gpu) => gpu.gpu.index === index));
    if (positions.length !== Math.max(1, Math.floor(wanted.cores / CORES_PER_GPU)) || positions.includes(-1))
      return null;
    charges.push(...positions.map((position) => chargeOf(shape, position, wanted)));
  }
  return [...charges, ...initCharges(shape, pod, charges)];
}

/**
 * Annotations do not name the GPUs of init containers; what those take beyond the containers after them is on the same
 * GPUs.
 */
function initCharges(shape: NodeShape, pod: BoundPod, charges: readonly Charge[]): Charge[] {
  const most = pod.demand.init.reduce(
    (largest, wanted) => (wanted.cores > (largest?.cores ?? 0) ? wanted : largest),
    pod.demand.init[0],
  );
  const first = charges[0];
  if (most === undefined || first === undefined) return [];
  const whole = chargeOf(shape, first.position, most);
  const extra = {
    position: first.position,
    cores: Math.max(0, whole.cores - first.cores),
    memoryBytes: Math.max(0, whole.memoryBytes - first.memoryBytes),
  };
  return extra.cores > 0 || extra.memoryBytes > 0 ? [extra] : [];
}
