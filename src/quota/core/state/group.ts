import type { AmountBlocks } from './amount-blocks.js';
import type { Budget } from './budget.js';
import type { LevelChain } from './level-chain.js';
import { NO_GRANTS, type DeclaredGrant } from './declared-grant.js';
import { GroupAmounts } from './group-amounts.js';
import { LayeredMap } from './layered-map.js';
import type { Key } from '../../../manifests/key.js';
import type { Layout } from '../amounts/layout.js';
import { GroupWorkloads } from './group-workloads.js';

/**
 * Relation of a group to its parent. `carved`: a fixed quota without lending and borrowing. `elastic`: the parent's
 * other users may use its unused quota, and it may use theirs.
 */
export type Mode = 'carved' | 'elastic';

/**
 * Until a later generation is observed or the reservation expires, an observation does not lower the limits of the
 * group.
 */
export interface LimitReservation {
  /** `metadata.generation` of the object whose change was admitted. */
  readonly generation: number;
  /** Milliseconds. */
  readonly expiresAt: number;
  /**
   * By how much the limit of a key is larger than the smaller one of the two that may come: the parent is charged the
   * larger limit, and workloads and children are admitted by the smaller one. Budgets have their keys with `cash/`.
   */
  readonly uncertain: ReadonlyMap<Key, bigint>;
}

/** The part of a limit that nothing is admitted by, because it may not come. */
export function uncertainOf({ limitReservation }: Pick<Group, 'limitReservation'>, key: Key): bigint {
  return limitReservation?.uncertain.get(key) ?? 0n;
}

/** A node of the tree with its counters. Only a state changes a group, and only one that it owns (QuotaState.own). */
export interface Group {
  readonly name: string;
  /** Creation time in milliseconds; distinguishes groups that had the same name one after the other. */
  readonly life: number;
  /** Name of the parent; empty for a root. */
  readonly parent: string;
  readonly depth: number;
  layout: Layout;
  amounts: GroupAmounts;
  mode: Mode;
  /**
   * Indexed by `layout.cashKeys`; budgets whose keys were removed from `hard` follow, because their usage still counts.
   */
  budgets: Budget[];
  /** Grants in the specification. */
  declared: readonly DeclaredGrant[];
  terminating: boolean;
  /** Reservation of admitted limits until the object is observed; null if the limits equal the limits of the object. */
  limitReservation: LimitReservation | null;
  /** The fork that made this copy; null for a group that no fork made. */
  owner: object | null;
  /** Cache of the group's chain. In a fork, set when all of its groups are copies of the fork. */
  chain: Chain | null;
  /** Names; the array is replaced, not changed. */
  children: readonly string[];
  /** In a fork, whether the lists are those of the original: most copies only get other amounts. */
  sharesLists: boolean;
  /** The lists, for reading; for changing, see `listsOf`. */
  workloads: Pick<GroupWorkloads, 'size' | 'forEach' | 'values'>;
  reserved: Pick<LayeredMap<string, true>, 'size' | 'has' | 'entries' | 'forEach'>;
  pods: Pick<LayeredMap<string, true>, 'size' | 'has' | 'entries' | 'forEach'>;
}

/** The workloads, reservations and pods that a group is charged for. */
export interface GroupLists {
  readonly workloads: GroupWorkloads;
  /** Keys of reservations for admitted workloads that are not observed yet. */
  readonly reserved: LayeredMap<string, true>;
  /** Ids of pods. */
  readonly pods: LayeredMap<string, true>;
}

/** The lists of an owned group, for changing. */
export function listsOf(group: Group): GroupLists {
  const lists = group as object as GroupLists;
  if (group.sharesLists) {
    group.workloads = lists.workloads.fork();
    group.reserved = lists.reserved.fork();
    group.pods = lists.pods.fork();
    group.sharesLists = false;
  }
  return lists;
}

/** A group and the ancestors whose pools it can use; only the group itself unless it is elastic. */
export type Chain = LevelChain<Group>;

/**
 * A copy for a fork; changes do not affect the original. The fields are in the order of `bareGroup`: objects of two
 * shapes would slow down every decision.
 */
export function forkGroup(group: Group, owner: object, blocks: AmountBlocks): Group {
  return {
    name: group.name,
    life: group.life,
    parent: group.parent,
    depth: group.depth,
    layout: group.layout,
    amounts: group.amounts.copy(blocks),
    mode: group.mode,
    budgets:
      group.budgets.length === 0 ? [] : group.budgets.map((budget) => ({ ...budget, grants: [...budget.grants] })),
    declared: group.declared,
    terminating: group.terminating,
    limitReservation: group.limitReservation,
    owner,
    chain: null,
    children: group.children,
    sharesLists: true,
    workloads: group.workloads,
    reserved: group.reserved,
    pods: group.pods,
  };
}

/** A group without keys and usage. */
export function bareGroup(
  name: string,
  life: number,
  parent: string,
  depth: number,
  layout: Layout,
  blocks: AmountBlocks,
): Group {
  return {
    name,
    life,
    parent,
    depth,
    layout,
    amounts: new GroupAmounts(layout.keys.length, blocks),
    mode: 'carved',
    budgets: [],
    declared: NO_GRANTS,
    terminating: false,
    limitReservation: null,
    owner: null,
    chain: null,
    children: [],
    sharesLists: false,
    workloads: new GroupWorkloads(),
    reserved: new LayeredMap(),
    pods: new LayeredMap(),
  };
}
