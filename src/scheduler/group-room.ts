import type { ClusterCache } from '../cluster/cluster-cache.js';
import type { CallBudget } from '../cluster/call-budget.js';
import type { Cluster, Evaluation } from '../cluster/placement/cluster.js';
import { isResolvable } from '../cluster/placement/fit-result.js';
import type { ClusterNode } from '../cluster/placement/node.js';
import { isOfKubernetes, type PodGroup } from '../cluster/pod-groups.js';
import type { EvictionLimitSource } from '../cluster/eviction-limits.js';
import type { PodView } from '../cluster/pod-view.js';
import { leastVictims, nodesOfVictims } from './group-preemption.js';
import { closest } from './node-closeness.js';

/** Room for the members of pod groups, which start together or not at all. */
export class GroupRoom {
  readonly #cluster: Cluster;
  readonly #cache: ClusterCache;
  readonly #minimums: Pick<EvictionLimitSource, 'groupMinimums'>;
  readonly #boundTo: (uid: string) => string | null;

  /** `boundTo` is the node of a pod, null while it has none. */
  constructor(parts: {
    readonly cluster: Cluster;
    readonly cache: ClusterCache;
    readonly minimums: Pick<EvictionLimitSource, 'groupMinimums'>;
    readonly boundTo: (uid: string) => string | null;
  }) {
    this.#cluster = parts.cluster;
    this.#cache = parts.cache;
    this.#minimums = parts.minimums;
    this.#boundTo = parts.boundTo;
  }

  /**
   * The pod's group; null without one. A repeated call for a member restarts the group: the scheduler has dropped the
   * results of the other members.
   */
  of(pod: PodView): PodGroup | null {
    if (pod.group === null) return null;
    const group = this.#cache.groups.seen(pod.group, pod.uid, null);
    if (group.asked.has(pod.uid)) {
      this.#releaseGroup(group);
      group.asked.clear();
      group.hasFailed = false;
    }
    group.asked.add(pod.uid);
    return group;
  }

  /**
   * Releases the room of groups that a pod need not wait for: of groups that probably cannot start, and for a member of
   * a group also of younger groups. The room of one group is released together. True if this released any.
   */
  release(own: PodGroup | null): boolean {
    let isReleased = false;
    for (const group of this.#cache.groups.values()) {
      const isYounger = own !== null && group.order > own.order;
      if (group === own || !(isYounger || group.hasFailed || this.#isGivenUp(group))) continue;
      if (this.#releaseGroup(group)) isReleased = true;
    }
    return isReleased;
  }

  /** A member of a group reserves room on one node only, so that room is left for the next members. */
  async bestNode(
    pod: PodView,
    { members }: PodGroup,
    fits: readonly ClusterNode[],
    budget: CallBudget,
  ): Promise<readonly ClusterNode[]> {
    const others = [...members].flatMap(([uid, name]) => {
      const node = name === null || uid === pod.uid ? undefined : this.#cluster.nodes.get(name);
      return node ?? [];
    });
    const size = Math.max(members.size, pod.groupMinimum ?? 0);
    const rooms = new Map<ClusterNode, number>();
    const roomOn = (node: ClusterNode): number => {
      const room = rooms.get(node) ?? this.#cluster.roomOn(node, pod.demand);
      rooms.set(node, room);
      return room;
    };
    const near = closest(fits, { others, missing: size > 1 ? size - others.length : Infinity, roomOn });
    const best = await budget.run(this.#cluster.allCheapest(pod.demand, near, budget));
    return best.slice(0, 1);
  }

  /**
   * The node of a member while the scheduler searches victims for its group; null if it does not, or there is none. No
   * room is reserved: the scheduler nominates the nodes if the search succeeds.
   */
  nodeOfVictims(pod: PodView, group: PodGroup, { refused }: Evaluation): Evaluation | null {
    const full = refused.filter(({ refusal }) => isResolvable(refusal)).map(({ name }) => name);
    const state = { cluster: this.#cluster, pods: this.#cache.pods, members: group.members };
    const [node] = leastVictims(nodesOfVictims(state, pod, full));
    if (node === undefined) return null;
    group.members.set(pod.uid, node.name);
    return { fits: [node], refused: refused.filter(({ name }) => name !== node.name) };
  }

  /**
   * Whether the scheduler, which now filters a pod outside of the group, has given the group up: it has asked about
   * fewer members than must start. It does not ask about a member for which its own plugins find no node.
   */
  #isGivenUp(group: PodGroup): boolean {
    if (!isOfKubernetes(group)) return false;
    const uids = [...group.members.keys()];
    const tried = uids.filter((uid) => group.asked.has(uid) || this.#boundTo(uid) !== null).length;
    const known = this.#minimums.groupMinimums().find(({ keys }) => keys.includes(group.key));
    return tried < (known?.minimum ?? uids.length);
  }

  #releaseGroup({ members }: PodGroup): boolean {
    let isReleased = false;
    for (const uid of members.keys()) {
      if (this.#cluster.reservations.get(uid)?.nominated !== null) continue;
      this.#cluster.reservations.drop(uid);
      members.set(uid, null);
      isReleased = true;
    }
    return isReleased;
  }
}
