import { maxOf, minOf, minus, plus, type Amount } from '../../../manifests/amount.js';
import { AmountBlocks } from './amount-blocks.js';

/** Columns of amounts. The columns that a decision reads come first. */
export const USED = 0;
export const SPILLED = 1;
export const KEPT = 2;
const POOL = 3;
const BORROW = 4;
const HARD = 5;
const CHILD_SUM = 6;
const LENT = 7;
const LEND = 8;
const WIDTH = 9;

const MAX_EXACT = Number.MAX_SAFE_INTEGER;

/**
 * The amounts of a group, by slot of its layout, in a block that groups share: memory access to the amounts of every
 * level is most of the cost of an elastic decision.
 */
export class GroupAmounts {
  /** Columns of numbers from `start`, one number a slot; NaN for a bigint. */
  readonly values: Float64Array;
  readonly start: number;
  readonly #slots: number;
  /** Bigints by position after `start`; null without any. */
  #big: Map<number, bigint> | null = null;

  constructor(slots: number, blocks = new AmountBlocks()) {
    const { values, start } = blocks.take(slots * WIDTH);
    this.values = values;
    this.start = start;
    this.#slots = slots;
  }

  copy(blocks = new AmountBlocks()): GroupAmounts {
    const copy = new GroupAmounts(this.#slots, blocks);
    copy.assign(this);
    return copy;
  }

  /** Takes over all amounts of a group with the same layout. */
  assign(from: GroupAmounts): void {
    const { values, start } = from;
    const length = this.#slots * WIDTH;
    for (let at = 0; at < length; at++) this.values[this.start + at] = values[start + at] as number;
    this.#big = from.#big === null ? null : new Map(from.#big);
  }

  /** Quota. */
  hard(slot: number): Amount {
    return this.#get(slot, HARD);
  }

  /** Charges of the group's own workloads and reservations. */
  selfUsed(slot: number): Amount {
    return this.#get(slot, USED);
  }

  /** Sum of the children's quotas. */
  childSum(slot: number): Amount {
    return this.#get(slot, CHILD_SUM);
  }

  /** Elastic: how much of its pool others may use; Infinity without a limit. */
  lendLimit(slot: number): Amount {
    return this.#get(slot, LEND);
  }

  /** Elastic: how much it may use beyond its pool; Infinity without a limit. */
  borrowLimit(slot: number): Amount {
    return this.#get(slot, BORROW);
  }

  /** Amount that elastic children lend to this group's pool. */
  lent(slot: number): Amount {
    return this.#get(slot, LENT);
  }

  /** Usage of this group's pool by elastic children. */
  spilled(slot: number): Amount {
    return this.#get(slot, SPILLED);
  }

  /** Derived: the size of the pool, from the group's own quota and its children's loans. */
  subtreeQuota(slot: number): Amount {
    return this.#get(slot, POOL);
  }

  /** Derived: the part of the pool that only this group may use. */
  localQuota(slot: number): Amount {
    return this.#get(slot, KEPT);
  }

  /** The quotas of the children and the charges of the group's own workloads. */
  totalUsed(slot: number): Amount {
    return plus(this.selfUsed(slot), this.childSum(slot));
  }

  /** Usage of the pool, by the group itself and by spilling children. */
  subtreeUsage(slot: number): Amount {
    return plus(this.selfUsed(slot), this.spilled(slot));
  }

  setHard(slot: number, amount: Amount): void {
    this.#set(slot, HARD, amount);
  }

  setSelfUsed(slot: number, amount: Amount): void {
    this.#set(slot, USED, amount);
  }

  /** Sets what elastic groups lend and borrow at most. */
  setLimits(slot: number, lend: Amount, borrow: Amount): void {
    this.#set(slot, LEND, lend);
    this.#set(slot, BORROW, borrow);
  }

  addHard(slot: number, change: Amount): void {
    this.#set(slot, HARD, plus(this.hard(slot), change));
  }

  addChildSum(slot: number, change: Amount): void {
    this.#set(slot, CHILD_SUM, plus(this.childSum(slot), change));
  }

  addLent(slot: number, change: Amount): void {
    this.#set(slot, LENT, plus(this.lent(slot), change));
  }

  addSpilled(slot: number, change: Amount): void {
    this.#set(slot, SPILLED, plus(this.spilled(slot), change));
  }

  /** Computes the derived amounts. */
  derive(slot: number, isElastic: boolean): void {
    const pool = plus(minus(this.hard(slot), this.childSum(slot)), this.lent(slot));
    const has = maxOf(0, pool);
    this.#set(slot, POOL, pool);
    this.#set(slot, KEPT, isElastic ? minus(has, minOf(has, this.lendLimit(slot))) : has);
  }

  /** How much of the pool is free; negative if it is overdrawn. */
  room(slot: number): Amount {
    return minus(this.subtreeQuota(slot), this.subtreeUsage(slot));
  }

  /** How much more the group could use if the pool above has `above` left. */
  roomBelow(slot: number, above: Amount): Amount {
    const used = this.subtreeUsage(slot);
    const kept = this.localQuota(slot);
    const borrowLimit = this.borrowLimit(slot);
    let room = above;
    if (borrowLimit !== Infinity)
      room = minOf(
        room,
        plus(minus(minus(maxOf(0, this.subtreeQuota(slot)), kept), maxOf(0, minus(used, kept))), borrowLimit),
      );
    // The kept part is available even if the pool above is overdrawn.
    return kept > used ? plus(minus(kept, used), maxOf(0, room)) : room;
  }

  /** `room` in plain numbers; NaN if they are not exact. */
  fastRoom(slot: number): number {
    return roomAt(this.values, this.start + slot, this.#slots);
  }

  /** Adds usage of the group itself; returns by how much it spills more. */
  charge(slot: number, change: Amount): Amount {
    return this.#add(slot, USED, change);
  }

  /** Adds usage of the pool by children; returns by how much the group spills more. */
  chargeSpilled(slot: number, change: Amount): Amount {
    return this.#add(slot, SPILLED, change);
  }

  #add(slot: number, column: number, change: Amount): Amount {
    if (typeof change === 'number') {
      const spill = addAt(
        this.values,
        this.start + slot,
        this.#slots,
        column,
        change,
        this.values[this.start + slot + KEPT * this.#slots] as number,
      );
      if (spill === spill) return spill;
    }
    const before = this.subtreeUsage(slot);
    const kept = this.localQuota(slot);
    this.#set(slot, column, plus(this.#get(slot, column), change));
    return minus(maxOf(0, minus(plus(before, change), kept)), maxOf(0, minus(before, kept)));
  }

  #get(slot: number, column: number): Amount {
    const at = column * this.#slots + slot;
    const value = this.values[this.start + at] as number;
    return value === value ? value : (this.#big?.get(at) as bigint);
  }

  #set(slot: number, column: number, amount: Amount): void {
    const at = column * this.#slots + slot;
    if (typeof amount === 'bigint') {
      this.values[this.start + at] = NaN;
      (this.#big ??= new Map()).set(at, amount);
    } else {
      this.values[this.start + at] = amount;
      this.#big?.delete(at);
    }
  }
}

/** `room` of the amounts whose first column is at `at`, with `slots` numbers a column; NaN if it is not exact. */
export function roomAt(values: Float64Array, at: number, slots: number): number {
  const used = exact(usageAt(values, at, slots));
  return exact((values[at + POOL * slots] as number) - used);
}

/** `roomBelow` of the amounts at `at`; NaN if it is not exact, or if `above` is NaN. */
export function roomBelowAt(values: Float64Array, at: number, slots: number, above: number): number {
  const used = exact(usageAt(values, at, slots));
  const kept = values[at + KEPT * slots] as number;
  const borrowLimit = values[at + BORROW * slots] as number;
  let room = above;
  if (borrowLimit !== Infinity) {
    const pool = Math.max(0, values[at + POOL * slots] as number);
    const free = exact(exact(pool - kept) - Math.max(0, exact(used - kept)));
    room = Math.min(room, exact(free + borrowLimit));
  }
  if (kept > used) return exact(exact(kept - used) + Math.max(0, room));
  return used >= kept ? room : NaN;
}

/** Usage of the pool whose amounts are at `at`, in plain numbers; NaN for a bigint. */
export function usageAt(values: Float64Array, at: number, slots: number): number {
  return (values[at + USED * slots] as number) + (values[at + SPILLED * slots] as number);
}

/** Whether nothing is kept and the limit on borrowing is infinite in every slot of the amounts from `start`. */
export function isOpen(values: Float64Array, start: number, slots: number): boolean {
  for (let at = start; at < start + slots; at++)
    if (values[at + KEPT * slots] !== 0 || values[at + BORROW * slots] !== Infinity) return false;
  return true;
}

/**
 * Adds `change` to a column of usage of the amounts at `at`. `kept` is the part of the pool that only the group may
 * use. Returns by how much its usage beyond that part grows, which its parent is charged. Changes nothing and returns
 * NaN if the numbers are not exact.
 */
export function addAt(
  values: Float64Array,
  at: number,
  slots: number,
  column: number,
  change: number,
  kept: number,
): number {
  const before = usageAt(values, at, slots);
  const sum = (values[at + column * slots] as number) + change;
  // Every step is exact if no number is near the limit of exact numbers; NaN counts as inexact.
  if (!(isHalf(before) && isHalf(change) && isHalf(kept) && Math.abs(sum) <= MAX_EXACT)) return NaN;
  values[at + column * slots] = sum;
  return Math.max(0, before + change - kept) - Math.max(0, before - kept);
}

/** A sum or a difference of safe integers; NaN if it may be rounded. */
function exact(value: number): number {
  return Math.abs(value) <= MAX_EXACT ? value : NaN;
}

/** Whether a number is so far below the largest exact number that sums of several such numbers are exact. */
function isHalf(value: number): boolean {
  return Math.abs(value) <= MAX_EXACT / 4;
}
