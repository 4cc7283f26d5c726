import { isExtended, type Key } from './key.js';

/** Resources that one type label speaks of: `gpu-type: A30` types `nvidia.com/gpu`, never `cpu`. */
export interface TypeFamily {
  /** Name of the family: `cpu`, `memory`, `gpu`. The label is `biz.group.resource.quota/<name>-type`. */
  readonly name: string;
  /** Resource names; one that ends in `*` stands for all that begin so. */
  readonly resources: readonly string[];
}

/** Families without configuration. */
export const DEFAULT_FAMILIES: readonly TypeFamily[] = [
  { name: 'cpu', resources: ['cpu'] },
  { name: 'memory', resources: ['memory'] },
  {
    name: 'gpu',
    resources: [
      'nvidia.com/gpu',
      'nvidia.com/mig-*',
      'nvidia.com/vgpu-number',
      'nvidia.com/vgpu-cores',
      'nvidia.com/vgpu-memory',
      'nvidia.com/gpumem',
      'nvidia.com/gpumem-percentage',
      'nvidia.com/gpucores',
      'tencent.com/vcuda-core',
      'tencent.com/vcuda-memory',
      'gpu.cards',
      'gpu.memory',
    ],
  },
];

/** Types of one workload by family: { gpu: 'A30' }. */
export type Types = Readonly<Record<string, string>>;

/** The name of the family that types `resource`, or null. */
export function familyOf(families: readonly TypeFamily[], resource: string): string | null {
  const found = families.find(({ resources }) =>
    resources.some((name) => (name.endsWith('*') ? resource.startsWith(name.slice(0, -1)) : resource === name)),
  );
  return found?.name ?? null;
}

/** Why `type` is no type, or null: types are values of labels. */
export function typeProblem(type: string): string | null {
  if (/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(type)) return null;
  return `"${type.slice(0, 80)}" is no type: a label value of at most 63 characters is`;
}

/** `r`, `r.t1`, `r.t1.t2`: what a resource of a type counts as, the general first. */
export function typeChain(resource: string, type: string): readonly string[] {
  const chain = [resource];
  if (type === '') return chain;
  for (let dot = type.indexOf('.'); dot >= 0; dot = type.indexOf('.', dot + 1))
    chain.push(`${resource}.${type.slice(0, dot)}`);
  chain.push(`${resource}.${type}`);
  return chain;
}

/** Whether a quantity is a request or a limit, or, for extended resources, both. */
export type Side = 'request' | 'limit' | 'both';

/** The side on which `resource` is counted when it stands among requests or limits. */
export function sideOf(resource: string, among: 'request' | 'limit'): Side {
  return isExtended(resource) ? 'both' : among;
}

/** Every key that a quantity of `resource` charges. Keys of quotas are compared with these, as a whole. */
export function expand(resource: string, side: Side, type: string): readonly Key[] {
  return typeChain(resource, type).flatMap((name) => {
    if (side === 'limit') return [`limits.${name}`];
    return side === 'request' ? [name, `requests.${name}`] : [name, `requests.${name}`, `limits.${name}`];
  });
}
