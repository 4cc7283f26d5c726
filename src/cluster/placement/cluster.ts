import { placedPodOn, decidedPod, withoutInit, type PlacedPod, type BoundPod } from './placed-pods.js';
import { Reservations } from './reservations.js';
import { CostTable, type Costs } from './cost-table.js';
import { needsGpu, type Demand } from './demand.js';
import { ClusterNode, slotsOf, type NodeShape } from './node.js';
import { placePod, type PodPlacement } from '../../gpu/pods/pod-placement.js';
import { atOnce, UNPACED, type Pace, type Turns } from './pace.js';
import { compareCosts, type Policy } from './policy/policy.js';
import { podRoom } from './pod-room.js';
import { ScratchStates } from './scratch.js';
import { MixLearner, type TypicalMix } from './typical-mix.js';
import { judgeFit, type MisfitReason } from './fit-result.js';

/** The nodes that a pod fits on, and the refusals of the other nodes. */
export interface Evaluation {
  readonly fits: readonly ClusterNode[];
  readonly refused: readonly { readonly name: string; readonly refusal: MisfitReason }[];
}

/**
 * The GPUs of a cluster and their pods: nodes, pods on them, and decisions whose pods are not bound yet. Pure state
 * without clock or connection: callers pass events in and ask for decisions. It has one owner, and calls never overlap.
 */
export class Cluster {
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #freeSlots: number[] = [];
  readonly #placedPods = new Map<string, PlacedPod>();
  /** Pods by node name; the node may be unknown. */
  readonly #podsOn = new Map<string, Set<string>>();
  readonly #scratch = new ScratchStates();
  readonly #learner = new MixLearner();
  readonly #costs: CostTable;
  readonly reservations = new Reservations();

  constructor(policy: Policy) {
    this.#costs = new CostTable(policy, this.#learner.mix);
  }

  get nodes(): ReadonlyMap<string, ClusterNode> {
    return this.#nodes;
  }

  get placedPods(): ReadonlyMap<string, PlacedPod> {
    return this.#placedPods;
  }

  /** UIDs of the pods that are bound to a node or decided for it. */
  podsOn(name: string): string[] {
    return [...(this.#podsOn.get(name) ?? [])];
  }

  get mix(): TypicalMix {
    return this.#learner.mix;
  }

  /** Adds an arriving pod to the sample from which the typical mix is learned. */
  observe(demand: Demand): void {
    if (this.#learner.observe(demand)) this.#costs.useMix(this.#learner.mix, this.#nodes.values());
  }

  /** Adds or replaces a node. */
  setNode(shape: NodeShape): void {
    const known = this.#nodes.get(shape.name);
    if (known !== undefined) {
      if (known.reshape(shape)) {
        this.#chargeAgain(known);
        this.reservations.renew(known, this.#scratch);
      } else this.#retry(known);
      return;
    }
    const node = new ClusterNode(this.#freeSlots.pop() ?? this.#nodes.size, shape);
    this.#nodes.set(shape.name, node);
    this.#chargeAgain(node);
  }

  /** Removes a node. Its pods stay known in case the node returns. */
  removeNode(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    this.#nodes.delete(name);
    this.#costs.forget(node);
    this.reservations.forgetNode(node);
    this.#freeSlots.push(node.slot);
    for (const uid of this.#podsOn.get(name) ?? []) {
      const placedPod = this.#placedPods.get(uid);
      if (placedPod !== undefined) this.#placedPods.set(uid, { ...placedPod, charges: [] });
    }
  }

  /**
   * Records a pod on a node. A decision of this process for the same node stays until annotations name other GPUs; a
   * decision for another node is replaced.
   */
  setPod(pod: BoundPod): PlacedPod {
    const known = this.#placedPods.get(pod.uid);
    const same =
      known !== undefined &&
      known.pod.nodeName === pod.nodeName &&
      (pod.gpus === null || sameGpus(known, pod.gpus)) &&
      known.pod.demand.key === pod.demand.key;
    if (same && (known.pod.initEnded ?? false) === (pod.initEnded ?? false)) return known;
    this.#release(pod.uid);
    const node = this.#nodes.get(pod.nodeName);
    const ended = same && pod.initEnded === true && known.gpus.length > 0;
    const placedPod =
      node === undefined ? unknownNode(pod) : ended ? withoutInit(node, known, pod) : placedPodOn(node, pod);
    this.#charge(placedPod, node);
    this.#retry(node);
    return placedPod;
  }

  /** Removes a pod that was deleted or has ended, or whose decision is no longer valid. */
  removePod(uid: string): void {
    const node = this.#release(uid);
    this.#retry(node);
  }

  /**
   * Decides that a pod goes to a node and charges its GPUs. Respects reservations of other pods if there is room beside
   * them; otherwise this pod takes precedence. Removes the pod's own reservation.
   */
  decide(uid: string, nodeName: string, demand: Demand): PodPlacement {
    const node = this.#nodes.get(nodeName);
    if (node === undefined)
      return { ok: false, reason: `node ${nodeName} is not known`, isProven: true, isUnfinished: false };
    this.reservations.drop(uid);
    const again = this.#release(uid);
    const scratch = this.#scratch.of(node);
    node.copyUnreserved(scratch, demand);
    const beside = placePod(node.shape, slotsOf(node.shape, scratch), demand);
    const placed = beside.ok ? beside : placePod(node.shape, slotsOf(node.shape, node.freeFor(demand)), demand);
    if (placed.ok) this.#charge(decidedPod({ uid, nodeName, demand, gpus: null }, placed), node);
    this.#retry(again);
    return placed;
  }

  /** `judge` without pauses, for callers that block no other work. */
  evaluate(demand: Demand, names: Iterable<string>, options: { readonly host?: boolean } = {}): Evaluation {
    return atOnce(this.judge(demand, names, UNPACED, options));
  }

  /**
   * The nodes on which the pod fits. Checks only GPUs; with `host`, also CPU and memory of the host, which the
   * scheduler itself checks more exactly. `templates` are nodes that do not exist, by name.
   */
  *judge(
    demand: Demand,
    names: Iterable<string>,
    pace: Pace,
    options: { readonly host?: boolean; readonly templates?: ReadonlyMap<string, ClusterNode> } = {},
  ): Turns<Evaluation> {
    const fits: ClusterNode[] = [];
    const refused: { name: string; refusal: MisfitReason }[] = [];
    let fitsAsBefore = this.#costs.knownFits(demand);
    for (const name of names) {
      if (pace.isTurnOver()) {
        yield;
        fitsAsBefore = this.#costs.knownFits(demand);
      }
      const node = this.#nodes.get(name) ?? options.templates?.get(name);
      if (node === undefined) {
        if (needsGpu(demand)) refused.push({ name, refusal: 'unknown-node' });
        continue;
      }
      if (
        options.host === true &&
        (node.free.cpuMilli < demand.cpuMilli || node.free.hostMemoryBytes < demand.hostMemoryBytes)
      ) {
        refused.push({ name, refusal: 'no-room' });
        continue;
      }
      let refusal: MisfitReason | 'unfinished' | null = null;
      if (!fitsAsBefore(node)) {
        do {
          if (pace.isTurnOver()) yield;
          refusal = pace.isSpent() ? 'not-searched' : judgeFit(node, demand, this.#scratch);
        } while (refusal === 'unfinished');
      }
      if (refusal === null) fits.push(node);
      else refused.push({ name, refusal });
    }
    return { fits, refused };
  }

  /** The cost of the pod on each node, by the policy. */
  costs(demand: Demand, nodes: readonly ClusterNode[]): Costs {
    return atOnce(this.costsInTurns(demand, nodes, UNPACED));
  }

  /** Like `costs`; nodes for which there is no time have infinite costs. */
  costsInTurns(demand: Demand, nodes: readonly ClusterNode[], pace: Pace): Turns<Costs> {
    return this.#costs.costs(demand, nodes, pace);
  }

  /** The node with the lowest cost, the first of equal ones; null if `nodes` is empty. */
  cheapest(demand: Demand, nodes: readonly ClusterNode[]): ClusterNode | null {
    return atOnce(this.allCheapest(demand, nodes, UNPACED))[0] ?? null;
  }

  /** The nodes with the lowest cost, in the given order. */
  *allCheapest(demand: Demand, nodes: readonly ClusterNode[], pace: Pace): Turns<readonly ClusterNode[]> {
    const { primary, tieBreak } = yield* this.costsInTurns(demand, nodes, pace);
    const compare = (a: number, b: number): number =>
      compareCosts(primary[a] as number, tieBreak[a] as number, primary[b] as number, tieBreak[b] as number);
    let best = 0;
    for (let at = 1; at < nodes.length; at++) if (compare(at, best) < 0) best = at;
    return nodes.filter((_, at) => compare(at, best) === 0);
  }

  /** How many pods of this demand have room on a node on which one fits. */
  roomOn(node: ClusterNode, demand: Demand): number {
    return podRoom(node, demand, this.#scratch);
  }

  /** Reserves room for the pod on every candidate node until the pod is decided, dropped or expires. */
  reserve(uid: string, demand: Demand, nodes: readonly ClusterNode[], expiresMs: number): void {
    atOnce(this.reservations.make({ uid, demand, expiresMs }, nodes, this.#scratch, UNPACED));
  }

  /** Like `reserve`, in turns; returns the nodes on which room is reserved. */
  reserveInTurns(
    uid: string,
    demand: Demand,
    nodes: readonly ClusterNode[],
    expiresMs: number,
    pace: Pace,
  ): Turns<readonly ClusterNode[]> {
    const present = nodes.filter((node) => this.#nodes.get(node.name) === node);
    return this.reservations.make({ uid, demand, expiresMs }, present, this.#scratch, pace);
  }

  /** Reserves for the pod the room that evicting the pods `leaving` makes; see `Reservations.nominate`. */
  nominate(uid: string, demand: Demand, priority: number, nodeName: string, leaving: readonly string[]): void {
    const node = this.#nodes.get(nodeName);
    if (node === undefined) return;
    const charges = leaving.flatMap((pod) => this.#placedPods.get(pod)?.charges ?? []);
    this.reservations.nominate(uid, demand, priority, node, charges);
  }

  /** Frees the GPUs of a pod; returns the node that had it. */
  #release(uid: string): ClusterNode | undefined {
    const placedPod = this.#placedPods.get(uid);
    if (placedPod === undefined) return undefined;
    this.#placedPods.delete(uid);
    const { nodeName, demand } = placedPod.pod;
    const pods = this.#podsOn.get(nodeName);
    pods?.delete(uid);
    if (pods?.size === 0) this.#podsOn.delete(nodeName);
    const node = this.#nodes.get(nodeName);
    node?.charge(placedPod.charges, demand.cpuMilli, demand.hostMemoryBytes, -1);
    return node;
  }

  #charge(placedPod: PlacedPod, node: ClusterNode | undefined): void {
    const { uid, nodeName, demand } = placedPod.pod;
    this.#placedPods.set(uid, placedPod);
    let pods = this.#podsOn.get(nodeName);
    if (pods === undefined) this.#podsOn.set(nodeName, (pods = new Set()));
    pods.add(uid);
    node?.charge(placedPod.charges, demand.cpuMilli, demand.hostMemoryBytes, 1);
  }

  /**
   * After a change of a node's GPUs, charges all its pods again: first the pods that name their GPUs, then the others.
   */
  #chargeAgain(node: ClusterNode): void {
    const placedPods = [...(this.#podsOn.get(node.name) ?? [])].map((uid) => this.#placedPods.get(uid) as PlacedPod);
    const named = (placedPod: PlacedPod) => placedPod.pod.gpus ?? (placedPod.gpus.length > 0 ? placedPod.gpus : null);
    const ordered = [
      ...placedPods.filter((placedPod) => named(placedPod) !== null),
      ...placedPods.filter((placedPod) => named(placedPod) === null),
    ];
    for (const old of ordered) {
      const again = placedPodOn(node, { ...old.pod, gpus: named(old) });
      this.#placedPods.set(old.pod.uid, {
        ...again,
        pod: old.pod,
        source: old.source === 'decided' ? 'decided' : again.source,
      });
      node.charge(again.charges, old.pod.demand.cpuMilli, old.pod.demand.hostMemoryBytes, 1);
    }
  }

  /** Capacity was freed: pods for which no GPU had room may get one now. */
  #retry(node: ClusterNode | undefined): void {
    if (node === undefined) return;
    for (const uid of this.#podsOn.get(node.name) ?? []) {
      const placedPod = this.#placedPods.get(uid);
      if (placedPod?.source !== 'nowhere') continue;
      const again = placedPodOn(node, placedPod.pod);
      if (again.source === 'nowhere') continue;
      this.#placedPods.set(uid, again);
      node.charge(again.charges, 0, 0, 1);
    }
  }
}

function unknownNode(pod: BoundPod): PlacedPod {
  return { pod, source: 'nowhere', charges: [], gpus: [] };
}

function sameGpus(known: PlacedPod, gpus: PlacedPod['gpus']): boolean {
  const text = (of: PlacedPod['gpus']) =>
    of.map(({ container, indexes, uuids = [] }) => `${container}:${indexes.join()}:${uuids.join()}`).join(';');
  return text(known.gpus) === text(gpus);
}
