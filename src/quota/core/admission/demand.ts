import { MAX_QUANTITY, times, type Amount } from '../../../manifests/amount.js';
import { isExtended, resourceProblem } from '../../../manifests/key.js';
import { readQuantity, type Quantity } from '../../../manifests/quantity.js';
import type { Refusal } from '../amounts/refusal.js';
import type { Need, PodSetCharge, RequestShapeTable } from '../state/request-shape.js';
import { sideOf, typeProblem, type Types } from '../amounts/type-family.js';
import { refKey, refProblem, type Workload, type WorkloadRef } from '../state/workload.js';

/**
 * Quantities by resource name: { cpu: '500m', 'nvidia.com/gpu': 1 }. A bigint is in base units: thousandths of cpu,
 * bytes.
 */
export type Resources = Readonly<Record<string, Quantity>>;

/** Equal pods of a workload, with the requests of one pod (the sum of its containers). */
export interface PodSet {
  readonly name?: string | undefined;
  readonly count: number;
  readonly requests?: Resources | undefined;
  readonly limits?: Resources | undefined;
  /**
   * Amounts that a container of the pod does not state: `limits.cpu`, `requests.memory`, `gpu.memory`. A group that
   * limits one of them refuses the pod. By default: amounts of cpu and memory that the sums above lack.
   */
  readonly unspecified?: readonly string[] | undefined;
}

/** The demand of a whole workload. */
export interface Demand {
  readonly workload: WorkloadRef;
  /** The name of its group; empty for none. */
  readonly group: string;
  readonly types?: Types | undefined;
  readonly podSets: readonly PodSet[];
  /** The resource under which it is counted: `deployments.apps` charges `count/deployments.apps`. */
  readonly objects?: string | undefined;
}

export type ReadDemand = { readonly ok: true; readonly workload: Workload } | Refusal;
export type ReadPod = { readonly ok: true; readonly podSet: PodSetCharge } | Refusal;

const MAX_POD_SETS = 1000;
const MAX_RESOURCES = 200;

/** Checks a demand and computes its charges. */
export function readDemand(shapes: RequestShapeTable, demand: Demand): ReadDemand {
  const key = refKey(demand.workload);
  const problem = refProblem(demand.workload, key);
  if (problem !== null) return refuse('InvalidName', problem);
  if (demand.podSets.length > MAX_POD_SETS) return refuse('InvalidDemand', `more than ${MAX_POD_SETS} pod sets`);
  const version = demand.workload.version ?? 0;
  if (!Number.isSafeInteger(version) || version < 0)
    return refuse('InvalidDemand', `version: expected a whole number of at least 0, found ${version}`);
  if (demand.objects !== undefined && !/^[a-z0-9.-]{1,253}$/.test(demand.objects))
    return refuse('InvalidName', `"${demand.objects.slice(0, 80)}" is not a resource of objects`);
  let podSets: readonly PodSetCharge[] = [];
  for (const podSet of demand.podSets) {
    const read = readPodSet(shapes, podSet, demand.types ?? {});
    if (!read.ok) return read;
    podSets = demand.podSets.length === 1 ? read.podSet.shape.shareSet(read.podSet) : [...podSets, read.podSet];
  }
  if (podSets.length > 1 && new Set(podSets.map(({ name }) => name)).size < podSets.length)
    return refuse('InvalidDemand', 'two pod sets have the same name');
  return {
    ok: true,
    workload: {
      key,
      uid: demand.workload.uid ?? '',
      group: demand.group,
      podSets,
      countKey: demand.objects === undefined ? '' : shapes.sharedText(`count/${demand.objects}`),
      heldReplicas: 0,
      version,
      isStale: false,
    },
  };
}

/** Checks the pods of one set. */
export function readPodSet(shapes: RequestShapeTable, podSet: PodSet, types: Types): ReadPod {
  const { count } = podSet;
  if (!Number.isSafeInteger(count) || count < 0)
    return refuse('InvalidCount', `pod count: expected a whole number of at least 0, found ${count}`);
  const requests = podSet.requests ?? {};
  const limits = podSet.limits ?? {};
  const [requested, limited] = [Object.keys(requests), Object.keys(limits)];
  if (Math.max(requested.length, limited.length) > MAX_RESOURCES) return tooManyResources();
  const amounts: Amount[] = [];
  let signature = '';
  for (const resource of requested) {
    const read = readNeed(resource, requests[resource] as Quantity, count);
    if (!read.ok) return read;
    signature += isExtended(resource) ? `${resource}=` : `${resource}>`;
    amounts.push(read.amount);
  }
  for (const resource of limited) {
    const read = readNeed(resource, limits[resource] as Quantity, count);
    if (!read.ok) return read;
    const extended = isExtended(resource);
    if (extended && Object.hasOwn(requests, resource)) {
      if (amounts[requested.indexOf(resource)] === read.amount) continue;
      return refuse('InvalidQuantity', `request and limit of ${resource.slice(0, 80)} must be equal`);
    }
    signature += extended ? `${resource}=` : `${resource}<`;
    amounts.push(read.amount);
  }
  const families = Object.keys(types);
  // Valid names contain no separator. A known signature with the same number of parts therefore proves that all names
  // are valid, and the check below is skipped.
  signature += `#${families.length}`;
  for (const family of families) signature += ` ${family}:${types[family] as string}`;
  const unspecified = podSet.unspecified;
  if (unspecified !== undefined) signature += ` !${unspecified.length} ${unspecified.join()}`;
  let shape = shapes.find(signature);
  if (shape === undefined || shape.needs.length !== amounts.length) {
    const needs = needsOf(requests, limits);
    const refused = unreadable(needs, types, unspecified ?? []);
    if (refused !== null) return refused;
    shape = shapes.add(signature, needs, types, unspecified ?? missing(requests, limits));
  }
  return { ok: true, podSet: { name: podSet.name ?? '', count, shape, amounts: shape.share(amounts) } };
}

/** In the order of the amounts: requests, then limits that differ from them. */
function needsOf(requests: Resources, limits: Resources): readonly Need[] {
  const asked = Object.keys(requests).map((resource): Need => ({ resource, side: sideOf(resource, 'request') }));
  const limited = Object.keys(limits).map((resource): Need => ({ resource, side: sideOf(resource, 'limit') }));
  return [...asked, ...limited.filter(({ resource, side }) => side !== 'both' || !Object.hasOwn(requests, resource))];
}

function unreadable(needs: readonly Need[], types: Types, unspecified: readonly string[]): Refusal | null {
  if (needs.length > MAX_RESOURCES) return tooManyResources();
  for (const { resource } of needs) {
    const problem = resourceProblem(resource);
    if (problem !== null) return refuse('UnknownKey', problem);
  }
  for (const [family, type] of Object.entries(types)) {
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(family))
      return refuse('InvalidType', `"${family.slice(0, 80)}" is not a family of types`);
    const problem = type === '' ? null : typeProblem(type);
    if (problem !== null) return refuse('InvalidType', problem);
  }
  const unknown = unspecified.find((name) => resourceProblem(name.replace(/^(?:requests|limits)\./, '')) !== null);
  return unknown === undefined ? null : refuse('UnknownKey', `"${unknown.slice(0, 80)}" is not a resource name`);
}

function missing(requests: Resources, limits: Resources): readonly string[] {
  return ['cpu', 'memory'].flatMap((resource) => [
    ...(Object.hasOwn(requests, resource) ? [] : [`requests.${resource}`]),
    ...(Object.hasOwn(limits, resource) ? [] : [`limits.${resource}`]),
  ]);
}

function readNeed(
  resource: string,
  quantity: Quantity,
  count: number,
): { readonly ok: true; readonly amount: Amount } | Refusal {
  const parsed = readQuantity(resource, quantity, 'up');
  if (!parsed.ok) return refuse(parsed.code, `${resource.slice(0, 80)}: ${parsed.reason}`);
  if (parsed.amount < 0) return refuse('NegativeQuantity', `${resource.slice(0, 80)} is negative`);
  const together = times(parsed.amount, count);
  // A number is exact and below the limit; comparing it with a bigint would dominate the cost of this function.
  if (typeof together === 'bigint' && together > MAX_QUANTITY)
    return refuse('QuantityTooLarge', `${resource.slice(0, 80)}: the sum of ${count} pods exceeds 2^63-1`);
  return parsed;
}

function tooManyResources(): Refusal {
  return refuse('InvalidDemand', `more than ${MAX_RESOURCES} resources`);
}

function refuse(code: Refusal['code'], reason: string): Refusal {
  return { ok: false, code, reason };
}
