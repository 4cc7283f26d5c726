import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';
import type { Charge, ClusterNode, FreeState } from './node.js';
import { copyState, emptyState } from './node.js';
import type { ScratchStates } from './scratch.js';
import { findPart, findWhole, needsEqual, tryPod } from './fit-simulation.js';

/**
 * A pod for which nodes were offered to the scheduler, which has not said yet which it takes. Room for the pod is kept
 * on each of them, on certain GPUs: whatever the order in which the pods come to their nodes, no GPU is promised twice.
 */
export interface Reservation {
  readonly uid: string;
  readonly demand: Demand;
  readonly expiresMs: number;
  /** Priority of a pod for which others are being removed; null for a pod that was offered nodes. */
  readonly nominated: number | null;
  /** Where room is kept. */
  readonly nodes: readonly ClusterNode[];
  /** What is kept on the node of the same place. */
  readonly charges: readonly (readonly Charge[])[];
}

/** All open claims. */
export class Reservations {
  readonly #claims = new Map<string, Reservation>();

  get size(): number {
    return this.#claims.size;
  }

  get(uid: string): Reservation | undefined {
    return this.#claims.get(uid);
  }

  /** True when a claim keeps room on several nodes, of which it will need one. */
  get undecided(): boolean {
    for (const claim of this.#claims.values()) if (claim.nodes.length > 1) return true;
    return false;
  }

  /** Reserves room; replaces an older reservation of the same pod. Nodes without room are left out. */
  make(uid: string, demand: Demand, nodes: readonly ClusterNode[], expiresMs: number, scratch: ScratchStates): void {
    this.drop(uid);
    const kept: ClusterNode[] = [];
    const charges: (readonly Charge[])[] = [];
    const shared: Shared = [];
    for (const node of nodes) {
      const room = roomOn(node, demand, scratch, shared);
      if (room === null) continue;
      node.hold(room);
      kept.push(node);
      charges.push(room);
    }
    if (kept.length > 0) this.#claims.set(uid, { uid, demand, expiresMs, nominated: null, nodes: kept, charges });
  }

  /**
   * Keeps the room that is being made for a pod on a node by removing others: the GPUs it would get once `leaving` is
   * free. Pods that come in between do not get them.
   */
  nominate(uid: string, demand: Demand, priority: number, node: ClusterNode, leaving: readonly Charge[]): void {
    this.drop(uid);
    const charges = roomForSeveral(node, node.without(leaving), demand);
    if (charges === null) return;
    node.hold(charges);
    this.#claims.set(uid, { uid, demand, expiresMs: Infinity, nominated: priority, nodes: [node], charges: [charges] });
  }

  /** A more important pod comes: what is kept for less important ones by nomination is open to it. */
  dropNominatedBelow(priority: number): void {
    for (const claim of [...this.#claims.values()]) {
      if (claim.nominated !== null && claim.nominated < priority) this.drop(claim.uid);
    }
  }

  /** The pod was decided or is gone: removes its reservation. */
  drop(uid: string): boolean {
    const claim = this.#claims.get(uid);
    if (claim === undefined) return false;
    claim.nodes.forEach((node, at) => node.unhold(claim.charges[at] as readonly Charge[]));
    return this.#claims.delete(uid);
  }

  /** Drops the claims that have waited too long; answers the pods. */
  expire(nowMs: number): string[] {
    const expired = [...this.#claims.values()].filter((claim) => claim.expiresMs <= nowMs).map((claim) => claim.uid);
    for (const uid of expired) this.drop(uid);
    return expired;
  }

  /** The node is gone; it may come back as another. */
  forgetNode(node: ClusterNode): void {
    for (const [uid, claim] of this.#claims) {
      const others = (_: unknown, at: number): boolean => claim.nodes[at] !== node;
      this.#claims.set(uid, { ...claim, nodes: claim.nodes.filter(others), charges: claim.charges.filter(others) });
    }
  }
}

/**
 * By position what a part of a GPU takes there: the same on every node, of which there may be thousands, several times
 * a second.
 */
type Shared = (readonly Charge[])[];

/** The GPUs on which the pod would be kept room; null where there is none. */
function roomOn(node: ClusterNode, demand: Demand, scratch: ScratchStates, shared: Shared): readonly Charge[] | null {
  const [only, another] = demand.containers;
  let state = node.free;
  if (node.held) {
    state = scratch.of(node);
    node.copyUnheld(state);
  }
  if (only === undefined || another !== undefined || demand.init.length > 0 || needsEqual(node, demand))
    return roomForSeveral(node, state, demand);
  if (only.cores < CORES_PER_GPU) {
    const position = findPart(state, only);
    if (position < 0) return null;
    return (shared[position] ??= [{ position, cores: only.cores, memoryBytes: only.memoryBytes }]);
  }
  const positions = findWhole(node.shape, state, only);
  return (
    positions?.map((position) => ({ position, cores: CORES_PER_GPU, memoryBytes: state.memory[position] as number })) ??
    null
  );
}

function roomForSeveral(node: ClusterNode, before: FreeState, demand: Demand): readonly Charge[] | null {
  const after = emptyState(before.cores.length);
  copyState(before, after);
  return tryPod(node, after, demand) ? differences(before, after) : null;
}

function differences(before: FreeState, after: FreeState): Charge[] {
  const charges: Charge[] = [];
  for (let position = 0; position < before.cores.length; position++) {
    const charge = {
      position,
      cores: (before.cores[position] as number) - (after.cores[position] as number),
      memoryBytes: (before.memory[position] as number) - (after.memory[position] as number),
    };
    if (charge.cores > 0 || charge.memoryBytes > 0) charges.push(charge);
  }
  return charges;
}
