import type { Charge } from '../../gpu/pods/pod-demand.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import type { Demand } from './demand.js';
import type { ClusterNode, FreeState } from './node.js';
import { copyState, emptyState } from './node.js';
import type { Pace, Turns } from './pace.js';
import type { ScratchStates } from './scratch.js';
import { findPart, findWhole, isSelective, tryPod } from './fit-simulation.js';

/**
 * A pod for which nodes were offered to the scheduler and whose node is not chosen yet. Room is reserved on certain
 * GPUs of each node, so that no GPU is reserved twice, in any order of the bindings.
 */
export interface Reservation {
  readonly uid: string;
  readonly demand: Demand;
  readonly expiresMs: number;
  /** Priority of a pod for which others are being evicted; null for a pod that was offered nodes. */
  readonly nominated: number | null;
  /** The nodes with reserved room, and the reserved amounts. */
  readonly rooms: Room[];
}

interface Room {
  readonly node: ClusterNode;
  readonly charges: readonly Charge[];
}

/** All open reservations. */
export class Reservations {
  readonly #reservations = new Map<string, Reservation>();

  get size(): number {
    return this.#reservations.size;
  }

  get(uid: string): Reservation | undefined {
    return this.#reservations.get(uid);
  }

  /** True when a reservation covers several nodes; the pod will use one of them. */
  get undecided(): boolean {
    for (const reservation of this.#reservations.values()) if (reservation.rooms.length > 1) return true;
    return false;
  }

  /**
   * Reserves room on the nodes; replaces an older reservation of the same pod. Returns the nodes with reserved room.
   * Nodes without room are left out, and those for which there was no time. Ends early when the pod is dropped.
   */
  *make(
    { uid, demand, expiresMs }: Pick<Reservation, 'uid' | 'demand' | 'expiresMs'>,
    nodes: readonly ClusterNode[],
    scratch: ScratchStates,
    pace: Pace,
  ): Turns<readonly ClusterNode[]> {
    this.drop(uid);
    const reservation: Reservation = { uid, demand, expiresMs, nominated: null, rooms: [] };
    this.#reservations.set(uid, reservation);
    const shared: Shared = [];
    for (const node of nodes) {
      if (pace.isTurnOver()) yield;
      if (pace.isSpent() && reservation.rooms.length > 0) break;
      if (this.#reservations.get(uid) !== reservation) return [];
      const charges = roomOn(node, demand, scratch, shared);
      if (charges === null) continue;
      node.reserve(charges);
      reservation.rooms.push({ node, charges });
    }
    if (reservation.rooms.length === 0) this.#reservations.delete(uid);
    return reservation.rooms.map(({ node }) => node);
  }

  /**
   * Reserves the room that evictions make for a pod on a node: the GPUs that the pod would get once `leaving` is free.
   * Pods that arrive meanwhile do not get them.
   */
  nominate(uid: string, demand: Demand, priority: number, node: ClusterNode, leaving: readonly Charge[]): void {
    this.drop(uid);
    const charges = roomForSeveral(node, node.without(leaving, demand), demand);
    if (charges === null) return;
    node.reserve(charges);
    const rooms = [{ node, charges }];
    this.#reservations.set(uid, { uid, demand, expiresMs: Infinity, nominated: priority, rooms });
  }

  /** Drops nominations of pods with lower priority, so that a more important pod can use their room. */
  dropNominatedBelow(priority: number): void {
    for (const reservation of [...this.#reservations.values()]) {
      if (reservation.nominated !== null && reservation.nominated < priority) this.drop(reservation.uid);
    }
  }

  /** Removes the reservation of a pod that was decided or deleted. */
  drop(uid: string): boolean {
    const reservation = this.#reservations.get(uid);
    if (reservation === undefined) return false;
    for (const { node, charges } of reservation.rooms) node.unreserve(charges);
    return this.#reservations.delete(uid);
  }

  /** Releases the room on all nodes but this one; without room on it, nothing changes. */
  narrow(uid: string, name: string): void {
    const rooms = this.#reservations.get(uid)?.rooms ?? [];
    const kept = rooms.find(({ node }) => node.name === name);
    if (kept === undefined) return;
    for (const { node, charges } of rooms.splice(0)) if (node !== kept.node) node.unreserve(charges);
    rooms.push(kept);
  }

  /** Removes all reservations. */
  clear(): void {
    for (const uid of [...this.#reservations.keys()]) this.drop(uid);
  }

  /** Removes expired reservations; returns their pods. */
  expire(nowMs: number): string[] {
    const expired = [...this.#reservations.values()]
      .filter((reservation) => reservation.expiresMs <= nowMs)
      .map((reservation) => reservation.uid);
    for (const uid of expired) this.drop(uid);
    return expired;
  }

  /** Reserves room again on a node whose GPUs changed; without room there, the reservations lose the node. */
  renew(node: ClusterNode, scratch: ScratchStates): void {
    for (const { rooms, demand } of this.#reservations.values()) {
      const at = rooms.findIndex((room) => room.node === node);
      if (at < 0) continue;
      const charges = roomOn(node, demand, scratch, []);
      rooms.splice(at, 1, ...(charges === null ? [] : [{ node, charges }]));
      if (charges !== null) node.reserve(charges);
    }
  }

  /** Removes a node from all reservations; it may return as another object. */
  forgetNode(node: ClusterNode): void {
    for (const { rooms } of this.#reservations.values()) {
      const at = rooms.findIndex((room) => room.node === node);
      if (at >= 0) rooms.splice(at, 1);
    }
  }
}

/**
 * By position, the charge of a part of a GPU: the same object for every node, because there may be thousands of nodes
 * several times a second.
 */
type Shared = (readonly Charge[])[];

/** The GPUs on which room would be reserved for the pod; null if there is no room. */
function roomOn(node: ClusterNode, demand: Demand, scratch: ScratchStates, shared: Shared): readonly Charge[] | null {
  const [only, another] = demand.containers;
  let state = node.freeFor(demand);
  if (node.isReserved) {
    state = scratch.of(node);
    node.copyUnreserved(state, demand);
  }
  if (only === undefined || another !== undefined || demand.init.length > 0 || isSelective(node, demand))
    return roomForSeveral(node, state, demand);
  if (only.cores < CORES_PER_GPU) {
    const position = findPart(state, only);
    if (position < 0) return null;
    return (shared[position] ??= [{ position, cores: only.cores, memoryBytes: only.memoryBytes }]);
  }
  const positions = findWhole(state, only);
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
