import type { ContainerRequest } from '../../gpu/request.js';
import { isMigResource } from '../../gpu/mig.js';
import { RESOURCE_NAME, type ResourceKind } from '../../gpu/resources.js';

/**
 * A resource that the emulated kubelet knows: one of the two vGPU resources, or whole MIG instances by profile name.
 */
export type EmulatedResource = ResourceKind | `tencent.com/mig-${string}`;

export function resourceName(resource: EmulatedResource): string {
  return resource === 'core' || resource === 'memory' ? RESOURCE_NAME[resource] : resource;
}

/** Returns null for the name of another resource. */
export function resourceNamed(name: string): EmulatedResource | null {
  if (isMigResource(name)) return name as EmulatedResource;
  return (['core', 'memory'] as const).find((kind) => RESOURCE_NAME[kind] === name) ?? null;
}

/** A container of an emulated pod, with its requests. */
export interface EmulatedContainer extends ContainerRequest {
  readonly name: string;
  /** Whole MIG instances, by resource. */
  readonly instances?: Readonly<Record<`tencent.com/mig-${string}`, number>>;
  /** Its environment variables, which only the API server shows. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A pod for the emulated kubelet. Init containers run first, one after another. */
export interface EmulatedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly initContainers: readonly EmulatedContainer[];
  readonly containers: readonly EmulatedContainer[];
}
