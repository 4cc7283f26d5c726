/**
 * An event at a level: a consumer's share of a resource passes its lower bound, or its whole demand is met (`resource`
 * is -1).
 */
interface Step {
  readonly level: number;
  readonly consumer: number;
  readonly resource: number;
}

const WHOLE_DEMAND = -1;
/** Relative tolerance: a resource this close to its capacity counts as exhausted. */
const TOLERANCE = 1e-12;

/**
 * Progressive filling: at level L, a consumer with weight w and dominant share s has the fraction f = min(1, L w / s)
 * of its demand, or its lower bound where that is larger. Between two steps all shares grow linearly, so that the next
 * exhausted resource is computed instead of searched for, and every step is taken once.
 *
 * Consumers and resources are indexes; `demands[i][r]`, `floors[i][r]` and `capacity[r]` have the same units. The sum
 * of the lower bounds is within the capacity.
 */
export class ProgressiveFilling {
  readonly #demands: readonly (readonly number[])[];
  readonly #floors: readonly (readonly number[])[];
  /**
   * Growth of a consumer's fraction per level: w / s. 0 without a demand, and for a demand of a resource that the
   * cluster lacks.
   */
  readonly #speeds: readonly number[];
  readonly #capacity: readonly number[];
  /** Total allocation of each resource at the current level, and its growth per level. */
  readonly #filled: number[];
  readonly #slopes: number[];
  readonly #isExhausted: boolean[];
  /** Consumers whose shares still grow, and the resources in which they exceed their lower bounds. */
  readonly #grows: boolean[];
  readonly #isAbove: boolean[][];
  readonly #fractions: number[];

  constructor(
    demands: readonly (readonly number[])[],
    floors: readonly (readonly number[])[],
    weights: readonly number[],
    capacity: readonly number[],
  ) {
    this.#demands = demands;
    this.#floors = floors;
    this.#capacity = capacity;
    this.#speeds = demands.map((demand, consumer) => {
      const share = demand.reduce(
        (most, amount, r) => (amount > 0 ? Math.max(most, amount / (capacity[r] as number)) : most),
        0,
      );
      return share > 0 && share < Infinity ? (weights[consumer] as number) / share : 0;
    });
    this.#filled = capacity.map((_, r) => floors.reduce((sum, floor) => sum + (floor[r] as number), 0));
    this.#slopes = capacity.map(() => 0);
    this.#isExhausted = capacity.map(() => false);
    this.#grows = this.#speeds.map((speed) => speed > 0);
    this.#isAbove = demands.map((demand) => demand.map(() => false));
    this.#fractions = demands.map(() => 0);
  }

  /** Fills until no share grows any more; returns the shares. */
  run(): number[][] {
    let level = 0;
    this.#markExhausted(level);
    for (const step of this.#steps()) {
      if (!(this.#grows[step.consumer] as boolean)) continue;
      // Other resources may be exhausted before this step, one after the other, and stop its consumer.
      for (
        let exhausted = this.#nextExhausted(level);
        exhausted.level <= step.level;
        exhausted = this.#nextExhausted(level)
      ) {
        this.#growTo(exhausted.level, level);
        level = exhausted.level;
        this.#filled[exhausted.resource] = this.#capacity[exhausted.resource] as number;
        this.#markExhausted(level);
      }
      if (!(this.#grows[step.consumer] as boolean)) continue;
      this.#growTo(step.level, level);
      level = step.level;
      if (step.resource === WHOLE_DEMAND) this.#stop(step.consumer, 1);
      else if (this.#isExhausted[step.resource] as boolean)
        this.#stop(step.consumer, level * (this.#speeds[step.consumer] as number));
      else this.#passFloor(step.consumer, step.resource);
      this.#markExhausted(level);
    }
    return this.#demands.map((demand, consumer) =>
      demand.map((amount, r) =>
        Math.max(this.#floors[consumer]?.[r] ?? 0, (this.#fractions[consumer] as number) * amount),
      ),
    );
  }

  /** All steps in order, if no resource is exhausted before. */
  #steps(): readonly Step[] {
    const steps: Step[] = [];
    this.#speeds.forEach((speed, consumer) => {
      if (speed === 0) return;
      this.#demands[consumer]?.forEach((amount, resource) => {
        const floor = this.#floors[consumer]?.[resource] ?? 0;
        if (amount > floor) steps.push({ level: floor / amount / speed, consumer, resource });
      });
      steps.push({ level: 1 / speed, consumer, resource: WHOLE_DEMAND });
    });
    return steps.sort((a, b) => a.level - b.level || a.consumer - b.consumer || b.resource - a.resource);
  }

  #growTo(level: number, from: number): void {
    for (let r = 0; r < this.#filled.length; r++) {
      if (!(this.#isExhausted[r] as boolean))
        this.#filled[r] = (this.#filled[r] as number) + (this.#slopes[r] as number) * (level - from);
    }
  }

  /** The resource that is exhausted next, and the level, if no step happens before. */
  #nextExhausted(level: number): { readonly level: number; readonly resource: number } {
    let next = { level: Infinity, resource: -1 };
    for (let r = 0; r < this.#filled.length; r++) {
      const slope = this.#slopes[r] as number;
      if (slope <= 0 || (this.#isExhausted[r] as boolean)) continue;
      const at = level + Math.max(0, (this.#capacity[r] as number) - (this.#filled[r] as number)) / slope;
      if (at < next.level) next = { level: at, resource: r };
    }
    return next;
  }

  /** Marks exhausted resources and stops the consumers that grow in them. */
  #markExhausted(level: number): void {
    for (let r = 0; r < this.#filled.length; r++) {
      const limit = this.#capacity[r] as number;
      if ((this.#isExhausted[r] as boolean) || (this.#filled[r] as number) < limit - limit * TOLERANCE) continue;
      this.#isExhausted[r] = true;
      for (let consumer = 0; consumer < this.#grows.length; consumer++) {
        if ((this.#grows[consumer] as boolean) && (this.#isAbove[consumer]?.[r] ?? false))
          this.#stop(consumer, level * (this.#speeds[consumer] as number));
      }
    }
  }

  #passFloor(consumer: number, resource: number): void {
    (this.#isAbove[consumer] as boolean[])[resource] = true;
    this.#slopes[resource] = (this.#slopes[resource] as number) + this.#growth(consumer, resource);
  }

  #stop(consumer: number, fraction: number): void {
    this.#grows[consumer] = false;
    this.#fractions[consumer] = Math.min(1, fraction);
    this.#isAbove[consumer]?.forEach((isAbove, r) => {
      if (isAbove) this.#slopes[r] = Math.max(0, (this.#slopes[r] as number) - this.#growth(consumer, r));
    });
  }

  #growth(consumer: number, resource: number): number {
    return (this.#speeds[consumer] as number) * (this.#demands[consumer]?.[resource] ?? 0);
  }
}
