import { GPU_COUNT, isExtended, isGpuCount, type Key } from '../../../manifests/key.js';

/** Resources whose type one label declares: `gpu-type: A30` is the type of `nvidia.com/gpu`, never of `cpu`. */
export interface TypeFamily {
  /** Name of the family: `cpu`, `memory`, `gpu`. The label is `biz.group.resource.quota/<name>-type`. */
  readonly name: string;
  /** Resource names; a trailing `*` matches any suffix. */
  readonly resources: readonly string[];
}

/** Families without a configuration. */
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
      ...GPU_COUNT,
      'gpu.memory',
    ],
  },
];

/** Types of one workload by family: { gpu: 'A30' }. */
export type Types = Readonly<Record<string, string>>;

/** The family of `resource`; null for none. */
export function familyOf(families: readonly TypeFamily[], resource: string): string | null {
  const found = families.find(({ resources }) =>
    resources.some((name) => (name.endsWith('*') ? resource.startsWith(name.slice(0, -1)) : resource === name)),
  );
  return found?.name ?? null;
}

/** Why `type` is not a valid type, or null: types are values of labels. */
export function typeProblem(type: string): string | null {
  if (/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(type)) return null;
  return `"${type.slice(0, 80)}" is not a type; expected a label value of at most 63 characters`;
}

/** `r`, `r.t1`, `r.t1.t2`: the names under which a resource of a type is counted, the general one first. */
export function typeChain(resource: string, type: string): readonly string[] {
  const chain = [resource];
  if (type === '') return chain;
  for (let dot = type.indexOf('.'); dot >= 0; dot = type.indexOf('.', dot + 1))
    chain.push(`${resource}.${type.slice(0, dot)}`);
  chain.push(`${resource}.${type}`);
  return chain;
}

/** Whether a quantity is a request or a limit; both for extended resources. */
export type Side = 'request' | 'limit' | 'both';

/** The side on which a request or limit of `resource` is counted. */
export function sideOf(resource: string, among: 'request' | 'limit'): Side {
  return isExtended(resource) ? 'both' : among;
}

/** All keys that a quantity of `resource` charges. They are compared with the keys of quotas as a whole. */
export function expand(resource: string, side: Side, type: string): readonly Key[] {
  const names = isGpuCount(resource) ? GPU_COUNT : [resource];
  return names
    .flatMap((name) => typeChain(name, type))
    .flatMap((name) => {
      if (side === 'limit') return [`limits.${name}`];
      return side === 'request' ? [name, `requests.${name}`] : [name, `requests.${name}`, `limits.${name}`];
    });
}
