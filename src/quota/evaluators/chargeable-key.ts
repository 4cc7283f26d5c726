import { GPU_COUNT, cashTarget, isObjectResource, type Key } from '../../manifests/key.js';
import { DEFAULT_FAMILIES, familyOf, type TypeFamily } from '../core/amounts/type-family.js';
import { KNOWN_KINDS } from './evaluate.js';
import type { Evaluator } from './evaluator.js';

/** The kinds and resources that can be charged. */
export interface Chargeable {
  /** In addition to the known kinds. */
  readonly kinds?: readonly Evaluator[] | undefined;
  readonly families?: readonly TypeFamily[] | undefined;
  /** Resources of the nodes. */
  readonly resources?: Iterable<string> | undefined;
}

const COUNT = 'count/';
const SIDES = ['requests.', 'limits.'];
/** Known without a family. */
const COMPUTE = ['cpu', 'memory', 'ephemeral-storage', 'storage', ...GPU_COUNT, 'gpu.memory'];
const OF_CLASS =
  /\.(?:storageclass\.storage\.k8s\.io\/(?:requests\.storage|persistentvolumeclaims)|deviceclass\.resource\.k8s\.io\/devices)$/;
/** Maximum distance of a misspelt name. An unknown name farther from all known names counts as a vendor's resource. */
const MAX_TYPO_DISTANCE = 2;

/** Why no workload can charge a key, with the nearest known name; null if one can. */
export function unchargeable(key: Key, chargeable: Chargeable = {}): string | null {
  const target = cashTarget(key) ?? key;
  const cash = key.slice(0, key.length - target.length);
  if (target.startsWith(COUNT)) {
    const names = [...(chargeable.kinds ?? []), ...KNOWN_KINDS].flatMap(({ charges, resource }) =>
      charges ? [`${COUNT}${resource}`] : [],
    );
    return names.includes(target) ? null : problem(key, nearest(target, names).name);
  }
  if (target === 'pods' || isObjectResource(target) || OF_CLASS.test(target)) return null;
  const side = SIDES.find((prefix) => target.startsWith(prefix)) ?? '';
  const resource = target.slice(side.length);
  if (resource === 'storage' && side === 'limits.') return problem(key, 'requests.storage');
  const { families = DEFAULT_FAMILIES } = chargeable;
  const known = [...COMPUTE, ...families.flatMap(({ resources }) => resources), ...(chargeable.resources ?? [])];
  if (known.some((name) => isOrIsTyped(resource, name, families)) || /^hugepages-\d+[KMG]i$/.test(resource))
    return null;
  const { name, distance } = nearest(
    resource,
    known.filter((each) => !each.endsWith('*')),
  );
  return resource.includes('/') && distance > MAX_TYPO_DISTANCE ? null : problem(key, `${cash}${side}${name}`);
}

function isOrIsTyped(resource: string, name: string, families: readonly TypeFamily[]): boolean {
  if (name.endsWith('*')) return resource.startsWith(name.slice(0, -1));
  return resource === name || (resource.startsWith(`${name}.`) && familyOf(families, name) !== null);
}

function problem(key: Key, name: string): string {
  return `nothing charges "${key.slice(0, 80)}", so it would limit nothing: the nearest known name is ${name}`;
}

/** The name with the smallest edit distance. */
function nearest(text: string, names: readonly string[]): { readonly name: string; readonly distance: number } {
  return names.reduce(
    (best, name) => {
      const distance = distanceOf(text, name);
      return distance < best.distance ? { name, distance } : best;
    },
    { name: 'pods', distance: Infinity },
  );
}

/** The edit distance (Levenshtein). */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
