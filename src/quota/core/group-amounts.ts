import { maxOf, minOf, minus, plus, type Amount } from './amount.js';

/** Columns of a slot. Those that a decision reads stand together. */
const USED = 0;
const SPILLED = 1;
const POOL = 2;
const KEPT = 3;
const BORROW = 4;
const HARD = 5;
const CHILD_SUM = 6;
const LENT = 7;
const LEND = 8;
const WIDTH = 9;

const MAX_EXACT = Number.MAX_SAFE_INTEGER;

/**
 * The amounts of a group, by slot of its layout, in one array: an elastic decision reads those of every level, and the
 * memory that it touches is most of its cost.
 */
export class GroupAmounts {
  readonly #values: Amount[];
  /** Whether an amount is, or was, a bigint; then the fast walks leave the group to the exact ones. */
  #hasBig: boolean;

  constructor(slots: number, values: Amount[] = zeros(slots * WIDTH), hasBig = false) {
    this.#values = values;
    this.#hasBig = hasBig;
  }

  copy(): GroupAmounts {
    return new GroupAmounts(0, this.#values.slice(), this.#hasBig);
  }

  /** Quota. */
  hard(slot: number): Amount {
    return this.#values[slot * WIDTH + HARD] as Amount;
  }

  /** Charges of the group's own workloads and reservations. */
  selfUsed(slot: number): Amount {
    return this.#values[slot * WIDTH + USED] as Amount;
  }

  /** Sum of the children's quotas. */
  childSum(slot: number): Amount {
    return this.#values[slot * WIDTH + CHILD_SUM] as Amount;
  }

  /** Elastic: how much of its pool others may use; Infinity without a limit. */
  lendLimit(slot: number): Amount {
    return this.#values[slot * WIDTH + LEND] as Amount;
  }

  /** Elastic: how much it may use beyond its pool; Infinity without a limit. */
  borrowLimit(slot: number): Amount {
    return this.#values[slot * WIDTH + BORROW] as Amount;
  }

  /** Amount that elastic children lend to this group's pool. */
  lent(slot: number): Amount {
    return this.#values[slot * WIDTH + LENT] as Amount;
  }

  /** Usage of this group's pool by elastic children. */
  spilled(slot: number): Amount {
    return this.#values[slot * WIDTH + SPILLED] as Amount;
  }

  /** Derived: the size of the pool, from the group's own quota and its children's loans. */
  subtreeQuota(slot: number): Amount {
    return this.#values[slot * WIDTH + POOL] as Amount;
  }

  /** Derived: the part of the pool that only this group may use. */
  localQuota(slot: number): Amount {
    return this.#values[slot * WIDTH + KEPT] as Amount;
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
    if (this.#hasBig) return NaN;
    const values = this.#values as number[];
    const at = slot * WIDTH;
    return exact(
      (values[at + POOL] as number) - exact((values[at + USED] as number) + (values[at + SPILLED] as number)),
    );
  }

  /** `roomBelow` in plain numbers; NaN if they are not exact, or if `above` is NaN. */
  fastRoomBelow(slot: number, above: number): number {
    if (this.#hasBig) return NaN;
    const values = this.#values as number[];
    const at = slot * WIDTH;
    const used = exact((values[at + USED] as number) + (values[at + SPILLED] as number));
    const kept = values[at + KEPT] as number;
    const borrowLimit = values[at + BORROW] as number;
    let room = above;
    if (borrowLimit !== Infinity) {
      const free = exact(exact(Math.max(0, values[at + POOL] as number) - kept) - Math.max(0, exact(used - kept)));
      room = Math.min(room, exact(free + borrowLimit));
    }
    if (kept > used) return exact(exact(kept - used) + Math.max(0, room));
    return used >= kept ? room : NaN;
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
    const at = slot * WIDTH;
    if (!this.#hasBig && typeof change === 'number') {
      const values = this.#values as number[];
      const before = (values[at + USED] as number) + (values[at + SPILLED] as number);
      const after = before + change;
      const kept = values[at + KEPT] as number;
      const sum = (values[at + column] as number) + change;
      const spill = Math.max(0, after - kept) - Math.max(0, before - kept);
      // Every step is exact if none is near the limit of exact numbers.
      if (isHalf(before) && isHalf(change) && isHalf(kept) && Math.abs(sum) <= MAX_EXACT) {
        values[at + column] = sum;
        return spill;
      }
    }
    const before = this.subtreeUsage(slot);
    const kept = this.localQuota(slot);
    this.#set(slot, column, plus(this.#values[at + column] as Amount, change));
    return minus(maxOf(0, minus(plus(before, change), kept)), maxOf(0, minus(before, kept)));
  }

  #set(slot: number, column: number, amount: Amount): void {
    if (typeof amount === 'bigint') this.#hasBig = true;
    this.#values[slot * WIDTH + column] = amount;
  }
}

/** A sum or a difference of safe integers; NaN if it may be rounded. */
function exact(value: number): number {
  return Math.abs(value) <= MAX_EXACT ? value : NaN;
}

/** Whether a sum of this and another such number is exact, twice over. */
function isHalf(value: number): boolean {
  return Math.abs(value) <= MAX_EXACT / 4;
}

const template: number[] = [];

/**
 * Zeros in the form in which V8 keeps fractions: an array of small integers would change its form with the first large
 * amount, and code for several forms is slow.
 */
function zeros(length: number): Amount[] {
  if (template.length < length) {
    while (template.length < length) template.push(0.5);
    template.fill(0);
  }
  return template.slice(0, length);
}
