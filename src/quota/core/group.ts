import type { Amount } from './amount.js';
import type { Budget } from './budget.js';
import { NO_GRANTS, type DeclaredGrant } from './declared-grant.js';
import { LayeredMap } from './layered-map.js';
import type { Layout } from './layout.js';
import { GroupWorkloads } from './group-workloads.js';

/**
 * How a group relates to its parent. `taken`: what it has is its own, nothing is lent or borrowed. `elastic`: what it
 * does not use may be used above and beside it, and it may use what others leave.
 */
export type Mode = 'carved' | 'elastic';

/**
 * Until the object is seen with a later generation, or until it expires, an observation does not lower the limits of
 * the group.
 */
export interface LimitReservation {
  /** `metadata.generation` of the object that the change was asked for. */
  readonly generation: number;
  /** Milliseconds. */
  readonly expiresAt: number;
}

/**
 * A node of the tree, with its counters. Arrays stand beside `layout.keys`. Only a state changes a group, and only one
 * that it owns (QuotaState.own).
 */
export interface Group {
  readonly name: string;
  /** Tells two lives of the same name apart. */
  readonly life: number;
  /** Name of the parent, empty for a root. */
  readonly parent: string;
  readonly depth: number;
  layout: Layout;
  hard: Amount[];
  /** Charged by the group's own workloads and reservations. */
  selfUsed: Amount[];
  /** Sum of the children's `hard`. */
  childSum: Amount[];
  mode: Mode;
  /** Elastic: how much of its pool others may use; Infinity without a limit. */
  lendLimit: Amount[];
  /** Elastic: how much it may use beyond its pool; Infinity without a limit. */
  borrowLimit: Amount[];
  /** What elastic children lend to this group's pool. */
  lent: Amount[];
  /** What elastic children use of this group's pool. */
  spilled: Amount[];
  /** Follows from the above: what is in the pool, the group's own and what children lend it. */
  subtreeQuota: Amount[];
  /** Follows from the above: what of the pool is for this group alone. */
  localQuota: Amount[];
  /** Beside `layout.cashKeys`, and behind them budgets whose keys left `hard`: what was consumed stays consumed. */
  budgets: Budget[];
  /** Cash that its specification gives it at times. */
  declared: readonly DeclaredGrant[];
  terminating: boolean;
  /** Limits that were admitted for an object that is not seen yet; null where the limits are those of the object. */
  limitReservation: LimitReservation | null;
  /**
   * The group and all above it, once somebody asked: groups do not move. Never in a fork, whose groups are copied one
   * by one.
   */
  ancestry: readonly Group[] | null;
  readonly children: LayeredMap<string, true>;
  readonly workloads: GroupWorkloads;
  /** Keys of reservations for workloads that are admitted but not there yet. */
  readonly reserved: LayeredMap<string, true>;
  /** Pods that run on account of this group, by id. */
  readonly pods: LayeredMap<string, true>;
}

/** A copy that can be changed without the original noticing. */
export function forkGroup(group: Group): Group {
  return {
    ...group,
    ancestry: null,
    hard: [...group.hard],
    selfUsed: [...group.selfUsed],
    childSum: [...group.childSum],
    lent: [...group.lent],
    spilled: [...group.spilled],
    subtreeQuota: [...group.subtreeQuota],
    localQuota: [...group.localQuota],
    lendLimit: [...group.lendLimit],
    borrowLimit: [...group.borrowLimit],
    budgets: group.budgets.map((budget) => ({ ...budget, grants: [...budget.grants] })),
    children: group.children.fork(),
    workloads: group.workloads.fork(),
    reserved: group.reserved.fork(),
    pods: group.pods.fork(),
  };
}

/** A group without keys, without use. */
export function bareGroup(name: string, life: number, parent: string, depth: number, layout: Layout): Group {
  return {
    name,
    life,
    parent,
    depth,
    layout,
    hard: [],
    selfUsed: [],
    childSum: [],
    mode: 'carved',
    lendLimit: [],
    borrowLimit: [],
    lent: [],
    spilled: [],
    subtreeQuota: [],
    localQuota: [],
    budgets: [],
    declared: NO_GRANTS,
    terminating: false,
    limitReservation: null,
    ancestry: null,
    children: new LayeredMap(),
    workloads: new GroupWorkloads(),
    reserved: new LayeredMap(),
    pods: new LayeredMap(),
  };
}
