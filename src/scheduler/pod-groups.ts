import type { Pod } from '../kube/pod.js';

/**
 * Names of pod groups by label or annotation: coscheduling of scheduler-plugins (today's and the former label), Kueue's
 * groups of plain pods, and Volcano's.
 */
const GROUP_KEYS = [
  'scheduling.x-k8s.io/pod-group',
  'pod-group.scheduling.sigs.k8s.io',
  'kueue.x-k8s.io/pod-group-name',
  'scheduling.k8s.io/group-name',
  'scheduling.volcano.sh/group-name',
] as const;

/** The key of a pod's group: pods with equal keys start together or not at all. Null for a pod without a group. */
export function groupOf({ namespace, podGroup, labels, annotations }: Pod): string | null {
  if (podGroup !== '') return `${namespace}/${podGroup}`;
  for (const key of GROUP_KEYS) {
    const name = labels[key] ?? annotations[key] ?? '';
    if (name !== '') return `${namespace}/${key}/${name}`;
  }
  return null;
}

/** A group of pods that start together or not at all. */
export interface PodGroup {
  /** Grows with each group that appears: of two groups, the one with the smaller number is older. */
  readonly order: number;
  /** By UID of a member: the node that it is bound to or has room reserved on; null without one. */
  readonly members: Map<string, string | null>;
  /** The members that the scheduler has asked about since it last began with the group. */
  readonly asked: Set<string>;
  /** Whether one of these members was refused: the scheduler probably gives up the others. */
  hasFailed: boolean;
}

/** The groups of the cluster's pods. */
export class PodGroups {
  readonly #groups = new Map<string, PodGroup>();
  #last = 0;

  /** All groups. */
  values(): Iterable<PodGroup> {
    return this.#groups.values();
  }

  /** Records a member and its node. */
  seen(key: string, uid: string, node: string | null): PodGroup {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = {
        order: ++this.#last,
        members: new Map<string, string | null>(),
        asked: new Set<string>(),
        hasFailed: false,
      };
      this.#groups.set(key, group);
    }
    group.members.set(uid, node ?? group.members.get(uid) ?? null);
    return group;
  }

  /** Removes a member that was deleted or has ended; a group without members is forgotten. */
  gone(key: string, uid: string): void {
    const group = this.#groups.get(key);
    if (group === undefined) return;
    group.members.delete(uid);
    group.asked.delete(uid);
    if (group.members.size === 0) this.#groups.delete(key);
  }
}
