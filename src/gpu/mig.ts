import type { Gpu } from './gpu.js';
import { CORE_RESOURCE } from './resources.js';

/**
 * How the agent uses GPUs that are partitioned by MIG. `none`: it excludes them. `shared`: each instance is a GPU with
 * 100 cores and its own memory. `whole`: each instance is one unit of a resource that is named after its profile.
 * `dynamic`: it creates instances for resource claims, and destroys them when the claims are released.
 */
export const MIG_STRATEGIES = ['none', 'shared', 'whole', 'dynamic'] as const;
export type MigStrategy = (typeof MIG_STRATEGIES)[number];

/** True for a GPU that is an instance. */
export function isInstance(gpu: Pick<Gpu, 'instance'>): boolean {
  return gpu.instance !== undefined;
}

/** The prefix of the resource names of whole instances. */
export const MIG_RESOURCE_PREFIX = `${CORE_RESOURCE.split('/')[0] ?? ''}/mig-`;

/** The resource of whole instances of a profile: `tencent.com/mig-1g.10gb`; as NVIDIA's, with `.me` for `+me`. */
export function migResource(profile: string): string {
  return `${MIG_RESOURCE_PREFIX}${profile.replaceAll('+', '.')}`;
}

/** True for a resource of whole instances. */
export function isMigResource(resource: string): boolean {
  return resource.startsWith(MIG_RESOURCE_PREFIX);
}
