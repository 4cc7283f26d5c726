import type { ClaimRef } from '../claims/resource-claim.js';
import type { ContainerRef } from './allocation.js';

/** One device of a unit, as the scheduler allocated it. */
export interface UnitDevice {
  /** `main`, or `main/alternative`. */
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly gpuUuid: string;
  /** Both 0 for admin access, which takes nothing. */
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** One main request of one ResourceClaim: what it holds of the node's GPUs, and which slice it belongs to. */
export interface ClaimUnit {
  /** See `unitId`. */
  readonly id: string;
  readonly claim: ClaimRef;
  /** Name of the main request. */
  readonly request: string;
  readonly devices: readonly UnitDevice[];
  /** Access for administrators: device nodes and libraries, no limits. */
  readonly admin: boolean;
  /** Hundredths that its containers may use while others leave the GPU idle; null: no more than its cores. */
  readonly softLimit: number | null;
  /** Id of the slice, which units share that one container uses together: that of one of them. */
  readonly slice: string;
  /** Containers that use it, as far as their pods are known. */
  readonly consumers: readonly ContainerRef[];
  /**
   * `preparing`: what containers need of it may not all be there yet. `released`: the kubelet let go of it, but
   * processes of its containers still run; what it holds is kept until they end.
   */
  readonly phase: 'preparing' | 'prepared' | 'released';
  /** Milliseconds since 1970. */
  readonly bookedAt: number;
  /** Since when neither the kubelet nor the API server nor a process vouches for it; null while one does. */
  readonly missingSince: number | null;
}

/** What one or several units hold of one GPU. */
export interface UnitPart {
  readonly gpuUuid: string;
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** What units hold of each GPU, in the order in which they name them. Devices on one GPU are added up. */
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

/** True when both were allocated the same devices with the same amounts, in whatever state they are. */
export function sameDevices(a: ClaimUnit, b: ClaimUnit): boolean {
  const key = ({ devices, admin }: ClaimUnit): string =>
    JSON.stringify([
      admin,
      devices.map((device) => [
        device.request,
        device.pool,
        device.device,
        device.shareId,
        device.cores,
        device.memoryBlocks,
      ]),
    ]);
  return key(a) === key(b);
}

export function describeClaim({ namespace, name }: ClaimRef): string {
  return `claim ${namespace}/${name}`;
}
