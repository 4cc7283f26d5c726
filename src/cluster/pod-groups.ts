import { record } from '../kube/json.js';
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

/** Labels or annotations with the number of members that a group needs: former coscheduling, and Kueue. */
const MINIMUM_KEYS = [
  'pod-group.scheduling.sigs.k8s.io/min-available',
  'kueue.x-k8s.io/pod-group-total-count',
] as const;

/** How many members the pod's group needs, as the pod itself says; null if it does not. */
export function groupMinimumOf({ labels, annotations }: Pick<Pod, 'labels' | 'annotations'>): number | null {
  const minimum = Number(
    MINIMUM_KEYS.map((key) => labels[key] ?? annotations[key]).find((value) => value !== undefined),
  );
  return Number.isSafeInteger(minimum) && minimum > 0 ? minimum : null;
}

/** A PodGroup of Kubernetes or of coscheduling: how many of its members must run for the group to be of use. */
export interface GroupMinimum {
  /** The keys of `groupOf` that pods of this group may have. */
  readonly keys: readonly string[];
  readonly minimum: number;
}

/**
 * Reads a PodGroup: `spec.schedulingPolicy.gang.minCount` (scheduling.k8s.io) or `spec.minMember`
 * (scheduling.x-k8s.io). Null for a group without a minimum.
 */
export function readGroupMinimum(object: unknown): GroupMinimum | null {
  const { metadata, spec } = record(object);
  const { name, namespace } = record(metadata);
  const { schedulingPolicy, minMember } = record(spec);
  const { minCount } = record(record(schedulingPolicy).gang);
  const minimum = minCount ?? minMember;
  if (typeof name !== 'string' || typeof namespace !== 'string' || typeof minimum !== 'number') return null;
  const ofCoscheduling = GROUP_KEYS.slice(0, 2).map((key) => `${namespace}/${key}/${name}`);
  return { keys: minCount === undefined ? ofCoscheduling : [`${namespace}/${name}`], minimum };
}

/** The key of a pod's group: pods with equal keys start together or not at all. Null for a pod without a group. */
export function groupOf({ namespace, podGroup, labels, annotations }: Pod): string | null {
  if (podGroup !== '') return `${namespace}/${podGroup}`;
  for (const key of GROUP_KEYS) {
    const name = labels[key] ?? annotations[key] ?? '';
    if (name !== '') return `${namespace}/${key}/${name}`;
  }
  return null;
}

/**
 * Whether the group is Kubernetes' own: the scheduler then filters all members that it tries one after another, without
 * another pod between them, before it binds one.
 */
export function isOfKubernetes({ key }: PodGroup): boolean {
  return key.split('/').length === 2;
}

/** A group of pods that start together or not at all. */
export interface PodGroup {
  /** See `groupOf`. */
  readonly key: string;
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

  get(key: string): PodGroup | undefined {
    return this.#groups.get(key);
  }

  /** All groups. */
  values(): Iterable<PodGroup> {
    return this.#groups.values();
  }

  /** Records a member and its node. */
  seen(key: string, uid: string, node: string | null): PodGroup {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = {
        key,
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
