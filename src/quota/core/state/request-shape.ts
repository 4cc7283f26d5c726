import type { Amount } from '../../../manifests/amount.js';
import { gpuResourceOf } from '../../../manifests/gpu-resources.js';
import { isGpuCount, isObjectResource, type Key } from '../../../manifests/key.js';
import type { Layout } from '../amounts/layout.js';
import { expand, familyOf, type Side, type TypeFamily, type Types } from '../amounts/type-family.js';

/** A resource that a pod requests, and on which side. Its amount is stored separately. */
export interface Need {
  readonly resource: string;
  readonly side: Side;
}

/** Equal pods of a workload. */
export interface PodSetCharge {
  /** Role of the pods, such as `worker`; empty for the only pod set. */
  readonly name: string;
  readonly count: number;
  readonly shape: RequestShape;
  /** Amounts of one pod, indexed by `shape.needs`. */
  readonly amounts: readonly Amount[];
}

/** Mapping of a shape to a layout: amount `needs[i]` of a pod is charged to slot `slots[i]`. */
export interface Plan {
  readonly slots: readonly number[];
  /** Index of an amount, or POD. */
  readonly needs: readonly number[];
  /** A key that the group limits and for which the pod gives no required quantity; null for none. */
  readonly mustSpecify: Key | null;
  /** With strict types: a typed key of the group that an untyped request would avoid; null for none. */
  readonly mustType: Key | null;
  /** Resources that name GPUs of the pod, of which neither the amount nor any derived one charges a key. */
  readonly unchargedGpus: readonly string[];
}

/** The pod itself as a need of a plan: 1 per pod. */
export const POD = -1;

const NO_PLAN: Plan = { slots: [], needs: [], mustSpecify: null, mustType: null, unchargedGpus: [] };

/** Number of recently used amounts that a shape keeps for sharing. */
const RECENT = 256;

/** A pod's request without amounts. Equal pods share it, and with it the computed keys that they charge. */
export class RequestShape {
  /** Equal for equal shapes. */
  readonly signature: string;
  readonly needs: readonly Need[];
  readonly types: Types;
  /** Required quantities that a container does not state, such as `limits.cpu` or `gpu.memory`. */
  readonly unspecified: readonly string[];
  readonly #families: readonly TypeFamily[];
  /** False for objects other than pods, such as claims and services. */
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

  /** All keys that the need at `index` charges. */
  keysOf(index: number): readonly Key[] {
    const { resource, side } = this.needs[index] as Need;
    return expand(resource, side, this.typeOf(resource));
  }

  /** Returns a recently used equal array if there is one: most pods of a cluster have one of a few sizes. */
  share(amounts: readonly Amount[]): readonly Amount[] {
    const place = placeOf(amounts, 0);
    const recent = this.#recent[place];
    if (recent !== undefined && amounts.every((amount, index) => amount === recent[index])) return recent;
    // A copy of the exact length, because grown arrays reserve more memory.
    const kept = amounts.slice();
    this.#recent[place] = kept;
    return kept;
  }

  /** Returns a recently used equal list with one pod set, if there is one. */
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

  /** Needs that charge `key`; includes POD if every pod charges it. */
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

  /** The plan of this shape for a group with `layout`. */
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
    return {
      slots,
      needs,
      mustSpecify: this.#mustSpecify(layout),
      mustType: this.#mustType(layout),
      unchargedGpus: this.#unchargedGpus(needs),
    };
  }

  #unchargedGpus(charging: readonly number[]): readonly string[] {
    const gpus = this.needs.map(({ resource }) => gpuResourceOf(resource));
    const isDerived = (index: number): boolean => {
      const { resource } = this.needs[index] as Need;
      return isGpuCount(resource) || resource === 'gpu.memory';
    };
    if (charging.some((need) => need !== POD && isDerived(need))) return [];
    const charged = new Set(charging.map((need) => gpus[need]));
    return [...new Set(gpus.flatMap((gpu) => gpu ?? []))].filter((gpu) => !charged.has(gpu));
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
   * A key of the group that limits a type of a resource which this shape requests without a type, if the group has no
   * untyped limit; null for none.
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

/** Position of amounts in the table of recently used ones. */
function placeOf(amounts: readonly Amount[], seed: number): number {
  let sum = seed % 65_521;
  for (const amount of amounts) sum = (sum * 31 + Number(amount)) % 65_521;
  return sum % RECENT;
}

const MAX_KNOWN = 4096;

/** Interns shapes: one object per combination of needs, types and unspecified keys. */
export class RequestShapeTable {
  readonly #families: readonly TypeFamily[];
  readonly #known = new Map<string, RequestShape>();
  readonly #texts = new Map<string, string>();

  constructor(families: readonly TypeFamily[]) {
    this.#families = families;
  }

  /** Returns the equal text that other workloads have, such as the key that counts their kind. */
  sharedText(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MAX_KNOWN) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }

  find(signature: string): RequestShape | undefined {
    return this.#known.get(signature);
  }

  /** Creates a shape and stores it under its signature. */
  add(signature: string, needs: readonly Need[], types: Types, unspecified: readonly string[]): RequestShape {
    const shape = new RequestShape(signature, needs, { ...types }, unspecified, this.#families);
    // Clearing the table is harmless: workloads keep their shapes, and equal ones are just not shared.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(signature, shape);
    return shape;
  }
}
