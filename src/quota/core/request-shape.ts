import type { Amount } from './amount.js';
import { isObjectResource, type Key } from './key.js';
import type { Layout } from './layout.js';
import { expand, familyOf, type Side, type TypeFamily, type Types } from './type-family.js';

/** One quantity of a pod: how much of which resource, asked for on which side. Amounts stand in an array beside. */
export interface Need {
  readonly resource: string;
  readonly side: Side;
}

/** Pods of one template within a workload. */
export interface PodSetCharge {
  /** Role of the pods: `worker`; empty for the only one. */
  readonly name: string;
  readonly count: number;
  readonly shape: RequestShape;
  /** Of one pod, beside `shape.needs`. */
  readonly amounts: readonly Amount[];
}

/** Where the amounts of a shape go: amount `needs[i]` of a pod is charged to slot `slots[i]` of the layout. */
export interface Plan {
  readonly slots: readonly number[];
  /** Index of an amount, or POD. */
  readonly needs: readonly number[];
  /** A key of the group for which the pod gives no quantity though it has to. */
  readonly mustSpecify: Key | null;
  /** Under strict types: a typed key of the group that an untyped request would pass by. */
  readonly mustType: Key | null;
}

/** Stands for the pod itself among the needs of a plan: 1 a pod. */
export const POD = -1;

const NO_PLAN: Plan = { slots: [], needs: [], mustSpecify: null, mustType: null };

/** So many sizes of pods of one shape are remembered. */
const RECENT = 256;

/**
 * What a pod asks for, without the amounts: pods of the same kind share it, and with it the work of finding the keys
 * they charge.
 */
export class RequestShape {
  /** Equal for shapes that are the same. */
  readonly signature: string;
  readonly needs: readonly Need[];
  readonly types: Types;
  /** What a container should have said and did not: `limits.cpu`, `gpu.memory`. */
  readonly unspecified: readonly string[];
  readonly #families: readonly TypeFamily[];
  /** False of objects that are no pods: claims, services. */
  readonly #isPod: boolean;
  readonly #plans = new Map<Layout, Plan>();
  readonly #recent: (readonly Amount[])[] = [];
  readonly #recentSets: (readonly PodSetCharge[])[] = [];
  #lastLayout: Layout | null = null;
  #lastPlan: Plan = NO_PLAN;
  readonly #chargers = new Map<Key, readonly number[]>();

  constructor(
    signature: string,
    needs: readonly Need[],
    types: Types,
    unspecified: readonly string[],
    families: readonly TypeFamily[],
  ) {
    this.signature = signature;
    this.needs = needs;
    this.types = types;
    this.unspecified = unspecified;
    this.#families = families;
    this.#isPod = !needs.some(({ resource }) => isObjectResource(resource));
  }

  typeOf(resource: string): string {
    const family = familyOf(this.#families, resource);
    return family === null || !Object.hasOwn(this.types, family) ? '' : (this.types[family] as string);
  }

  /** Every key that the need at `index` charges. */
  keysOf(index: number): readonly Key[] {
    const { resource, side } = this.needs[index] as Need;
    return expand(resource, side, this.typeOf(resource));
  }

  /**
   * Amounts of a pod: the same array again where equal ones were seen lately. Most pods of a cluster come in a few
   * sizes.
   */
  share(amounts: readonly Amount[]): readonly Amount[] {
    const place = placeOf(amounts, 0);
    const recent = this.#recent[place];
    if (recent !== undefined && amounts.every((amount, index) => amount === recent[index])) return recent;
    // As long as it has to be: arrays that grow reserve more.
    const kept = amounts.slice();
    this.#recent[place] = kept;
    return kept;
  }

  /** The pods of a workload that has no others: the same list again where an equal one was seen lately. */
  shareSet(podSet: PodSetCharge): readonly PodSetCharge[] {
    const { name, count, amounts } = podSet;
    const place = placeOf(amounts, count);
    const recent = this.#recentSets[place];
    const [same] = recent ?? [];
    if (
      recent !== undefined &&
      same?.count === count &&
      same.name === name &&
      amounts.every((amount, index) => amount === same.amounts[index])
    )
      return recent;
    const kept = [podSet];
    this.#recentSets[place] = kept;
    return kept;
  }

  /** Needs that charge `key`, POD among them where the pod itself does. */
  chargersOf(key: Key): readonly number[] {
    const known = this.#chargers.get(key);
    if (known !== undefined) return known;
    const chargers =
      key === 'pods' && this.#isPod
        ? [POD]
        : [...this.needs.keys()].filter((index) => this.keysOf(index).includes(key));
    if (this.#chargers.size >= 256) this.#chargers.clear();
    this.#chargers.set(key, chargers);
    return chargers;
  }

  /** Where the quantities of this shape go in a group with `layout`. */
  planFor(layout: Layout): Plan {
    if (layout === this.#lastLayout) return this.#lastPlan;
    let plan = this.#plans.get(layout);
    if (plan === undefined) {
      plan = this.#plan(layout);
      if (this.#plans.size >= 256) this.#plans.clear();
      this.#plans.set(layout, plan);
    }
    this.#lastLayout = layout;
    this.#lastPlan = plan;
    return plan;
  }

  #plan(layout: Layout): Plan {
    const slots: number[] = [];
    const needs: number[] = [];
    const charge = (key: Key, need: number): void => {
      const slot = layout.slots.get(key);
      if (slot !== undefined) {
        slots.push(slot);
        needs.push(need);
      }
      const cash = layout.cashKeys.indexOf(key);
      if (cash >= 0) {
        slots.push(layout.keys.length + cash);
        needs.push(need);
      }
    };
    this.needs.forEach((_, index) => this.keysOf(index).forEach((key) => charge(key, index)));
    if (this.#isPod) charge('pods', POD);
    return { slots, needs, mustSpecify: this.#mustSpecify(layout), mustType: this.#mustType(layout) };
  }

  #mustSpecify(layout: Layout): Key | null {
    for (const name of this.unspecified) {
      const [, prefix = '', resource = ''] = /^(requests\.|limits\.)?(.*)$/.exec(name) ?? [];
      const side = prefix === 'limits.' ? 'limit' : prefix === 'requests.' ? 'request' : 'both';
      const missing = expand(resource, side, this.typeOf(resource)).find((key) => layout.slots.has(key));
      if (missing !== undefined) return missing;
    }
    return null;
  }

  /**
   * A key that limits types of a resource which this shape asks for without a type, where the group has no untyped
   * limit.
   */
  #mustType(layout: Layout): Key | null {
    for (const [index, need] of this.needs.entries()) {
      if (familyOf(this.#families, need.resource) === null || this.typeOf(need.resource) !== '') continue;
      const keys = this.keysOf(index);
      if (keys.some((key) => layout.slots.has(key))) continue;
      const typed = layout.keys.find((key) => keys.some((untyped) => key.startsWith(`${untyped}.`)));
      if (typed !== undefined) return typed;
    }
    return null;
  }
}

/** Where a size of pods is looked for among those that were seen lately. */
function placeOf(amounts: readonly Amount[], seed: number): number {
  let sum = seed % 65_521;
  for (const amount of amounts) sum = (sum * 31 + Number(amount)) % 65_521;
  return sum % RECENT;
}

const MAX_KNOWN = 4096;

/** Hands out shapes: one object for the same needs, types and families. */
export class RequestShapeTable {
  readonly #families: readonly TypeFamily[];
  readonly #known = new Map<string, RequestShape>();

  constructor(families: readonly TypeFamily[]) {
    this.#families = families;
  }

  /** The shape with that signature. */
  find(signature: string): RequestShape | undefined {
    return this.#known.get(signature);
  }

  /** Makes a shape and keeps it under its signature. */
  add(signature: string, needs: readonly Need[], types: Types, unspecified: readonly string[]): RequestShape {
    const shape = new RequestShape(signature, needs, { ...types }, unspecified, this.#families);
    // Forgetting is harmless: workloads keep their shapes, equal ones are only no longer shared.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(signature, shape);
    return shape;
  }
}
