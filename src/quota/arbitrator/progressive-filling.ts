/**
 * Something that happens at a level: consumer `who` passes its floor of resource `what`, or has everything (`what` is
 * -1).
 */
interface Step {
  readonly level: number;
  readonly who: number;
  readonly what: number;
}

const EVERYTHING = -1;
/** So close to what there is, in parts of it, a resource counts as used up. */
const NEARLY_FULL = 1e-12;

/**
 * Water rising in one vessel for all: at level L a consumer of weight w and dominant share s has the fraction f =
 * min(1, L w / s) of all that it demands, or its floor where that is more. Between two steps everything grows in
 * straight lines, so that it is known beforehand which resource is used up next: nothing is searched for, every step is
 * taken once.
 *
 * Consumers and resources are numbered; `demands[i][r]`, `floors[i][r]` and `capacity[r]` in the same units. Floors fit
 * into capacity.
 */
export class ProgressiveFilling {
  readonly #demands: readonly (readonly number[])[];
  readonly #floors: readonly (readonly number[])[];
  /** Growth of a consumer's fraction with the level: w / s. 0 for who demands nothing, or what nobody has. */
  readonly #speeds: readonly number[];
  readonly #capacity: readonly number[];
  /** By resource: what all have together at the present level, and how that grows. */
  readonly #filled: number[];
  readonly #slopes: number[];
  readonly #isFull: boolean[];
  /** Consumers that still rise, and with which resources they are above their floors. */
  readonly #rises: boolean[];
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
    this.#speeds = demands.map((demand, who) => {
      const share = demand.reduce(
        (most, amount, r) => (amount > 0 ? Math.max(most, amount / (capacity[r] as number)) : most),
        0,
      );
      return share > 0 && share < Infinity ? (weights[who] as number) / share : 0;
    });
    this.#filled = capacity.map((_, r) => floors.reduce((sum, floor) => sum + (floor[r] as number), 0));
    this.#slopes = capacity.map(() => 0);
    this.#isFull = capacity.map(() => false);
    this.#rises = this.#speeds.map((speed) => speed > 0);
    this.#isAbove = demands.map((demand) => demand.map(() => false));
    this.#fractions = demands.map(() => 0);
  }

  /** Fills until nobody rises any more; what each has then. */
  run(): number[][] {
    let level = 0;
    this.#noteFull(level);
    for (const step of this.#steps()) {
      if (!(this.#rises[step.who] as boolean)) continue;
      // Before this step other resources may be used up, one after the other; that may stop its consumer too.
      for (let full = this.#nextFull(level); full.level <= step.level; full = this.#nextFull(level)) {
        this.#riseTo(full.level, level);
        level = full.level;
        this.#filled[full.resource] = this.#capacity[full.resource] as number;
        this.#noteFull(level);
      }
      if (!(this.#rises[step.who] as boolean)) continue;
      this.#riseTo(step.level, level);
      level = step.level;
      if (step.what === EVERYTHING) this.#stop(step.who, 1);
      else if (this.#isFull[step.what] as boolean) this.#stop(step.who, level * (this.#speeds[step.who] as number));
      else this.#passFloor(step.who, step.what);
      this.#noteFull(level);
    }
    return this.#demands.map((demand, who) =>
      demand.map((amount, r) => Math.max(this.#floors[who]?.[r] ?? 0, (this.#fractions[who] as number) * amount)),
    );
  }

  /** All that will happen unless something stops it, in order. */
  #steps(): readonly Step[] {
    const steps: Step[] = [];
    this.#speeds.forEach((speed, who) => {
      if (speed === 0) return;
      this.#demands[who]?.forEach((amount, what) => {
        const floor = this.#floors[who]?.[what] ?? 0;
        if (amount > floor) steps.push({ level: floor / amount / speed, who, what });
      });
      steps.push({ level: 1 / speed, who, what: EVERYTHING });
    });
    return steps.sort((a, b) => a.level - b.level || a.who - b.who || b.what - a.what);
  }

  #riseTo(level: number, from: number): void {
    for (let r = 0; r < this.#filled.length; r++) {
      if (!(this.#isFull[r] as boolean))
        this.#filled[r] = (this.#filled[r] as number) + (this.#slopes[r] as number) * (level - from);
    }
  }

  /** Which resource is used up next, and at which level, if nothing else happens before. */
  #nextFull(level: number): { readonly level: number; readonly resource: number } {
    let next = { level: Infinity, resource: -1 };
    for (let r = 0; r < this.#filled.length; r++) {
      const slope = this.#slopes[r] as number;
      if (slope <= 0 || (this.#isFull[r] as boolean)) continue;
      const at = level + Math.max(0, (this.#capacity[r] as number) - (this.#filled[r] as number)) / slope;
      if (at < next.level) next = { level: at, resource: r };
    }
    return next;
  }

  /** Notes resources that are used up, and stops who rises with one of them. */
  #noteFull(level: number): void {
    for (let r = 0; r < this.#filled.length; r++) {
      const limit = this.#capacity[r] as number;
      if ((this.#isFull[r] as boolean) || (this.#filled[r] as number) < limit - limit * NEARLY_FULL) continue;
      this.#isFull[r] = true;
      for (let who = 0; who < this.#rises.length; who++) {
        if ((this.#rises[who] as boolean) && (this.#isAbove[who]?.[r] ?? false))
          this.#stop(who, level * (this.#speeds[who] as number));
      }
    }
  }

  #passFloor(who: number, what: number): void {
    (this.#isAbove[who] as boolean[])[what] = true;
    this.#slopes[what] = (this.#slopes[what] as number) + this.#growth(who, what);
  }

  #stop(who: number, fraction: number): void {
    this.#rises[who] = false;
    this.#fractions[who] = Math.min(1, fraction);
    this.#isAbove[who]?.forEach((isAbove, r) => {
      if (isAbove) this.#slopes[r] = Math.max(0, (this.#slopes[r] as number) - this.#growth(who, r));
    });
  }

  #growth(who: number, what: number): number {
    return (this.#speeds[who] as number) * (this.#demands[who]?.[what] ?? 0);
  }
}
