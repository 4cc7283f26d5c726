import type { ClaimRef } from '../claims/resource-claim.js';
import type { Priority } from '../priority.js';
import type { ContainerRef } from './allocation.js';

/** One device of a unit, as the scheduler allocated it. */
export interface UnitDevice {
  /** `main`, or `main/alternative`. */
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly gpuUuid: string;
  /** Both 0 for administrator access, which takes no capacity. */
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** The devices of one main request of one ResourceClaim, and the slice that their containers use. */
export interface ClaimUnit {
  /** See `unitId`. */
  readonly id: string;
  readonly claim: ClaimRef;
  /** Name of the claim in the pod's `spec.resourceClaims`; absent unless it was made from a template. */
  readonly nameInPod?: string;
  /** Name of the main request. */
  readonly request: string;
  readonly devices: readonly UnitDevice[];
  /** Administrator access: device nodes and libraries without limits. */
  readonly admin: boolean;
  /** Cores that its containers may use while other containers leave the GPU idle; null: no more than its cores. */
  readonly softLimit: number | null;
  /**
   * The highest priority that its pods may request, and the priority of pods that request none; absent: the pod's
   * annotation decides.
   */
  readonly priority?: Priority;
  /** Id of the slice. Units that one container uses together share the slice of one of them. */
  readonly slice: string;
  /** Containers that use the unit, as far as their pods are known. */
  readonly consumers: readonly ContainerRef[];
  /**
   * `preparing`: files of its containers may be missing. `released`: the kubelet released the claim, but processes of
   * its containers still run; its devices stay allocated until they end.
   */
  readonly phase: 'preparing' | 'prepared' | 'released';
  /** True while the amounts are only assumed: neither a record nor the API server named them. */
  readonly isAssumed?: true;
  /** Milliseconds since 1970. */
  readonly chargedAt: number;
  /** Since when neither the kubelet, the API server nor a process confirms it; null while one of them does. */
  readonly missingSince: number | null;
}

/** The amounts that one or several units have of one GPU. */
export interface UnitPart {
  readonly gpuUuid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
}

/**
 * The amounts that units have of each GPU, in the order in which the units name the GPUs. Devices on one GPU are added
 * up.
 */
export function partsOfUnits(units: Iterable<ClaimUnit>): UnitPart[] {
  const parts = new Map<string, UnitPart>();
  for (const { devices } of units) {
    for (const { gpuUuid, cores, memoryBlocks } of devices) {
      const known = parts.get(gpuUuid) ?? { gpuUuid, cores: 0, memoryBlocks: 0 };
      parts.set(gpuUuid, { gpuUuid, cores: known.cores + cores, memoryBlocks: known.memoryBlocks + memoryBlocks });
    }
  }
  return [...parts.values()];
}

/** True when both units have the same devices with the same amounts; their phases may differ. */
export function sameDevices(a: ClaimUnit, b: ClaimUnit): boolean {
  const key = ({ devices, admin }: ClaimUnit): string =>
    JSON.stringify([
      admin,
      devices.map((device) => [
        device.request,
        device.pool,
        device.device,
        // A MIG instance that was created again has the same name.
        device.gpuUuid,
        device.shareId,
        device.cores,
        device.memoryBlocks,
      ]),
    ]);
  return key(a) === key(b);
}

/** True when both units have the same GPUs in the same order; their amounts may differ. */
export function sameGpus(a: ClaimUnit, b: ClaimUnit): boolean {
  const key = ({ devices }: ClaimUnit): string => devices.map(({ gpuUuid }) => gpuUuid).join();
  return key(a) === key(b);
}

export function describeClaim({ namespace, name }: ClaimRef): string {
  return `claim ${namespace}/${name}`;
}
