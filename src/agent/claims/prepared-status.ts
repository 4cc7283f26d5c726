import type { DeviceLimit } from '../../abi/limits-file.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { ClaimAllocator } from '../allocator/index.js';
import type { DeviceStatus, PreparedStatus } from './claim-status.js';

/** The present limits of a slice on one GPU; null while the slice is not open. */
export type LiveLimits = (slice: string, gpuUuid: string) => DeviceLimit | null;

/** The devices of prepared claims with their amounts and present limits. */
export function preparedStatus(claims: ClaimAllocator, liveLimit: LiveLimits): PreparedStatus[] {
  const prepared = new Map<string, PreparedStatus>();
  for (const { claim, phase, slice, admin, chargedAt, devices } of claims.state.units.values()) {
    if (phase !== 'prepared') continue;
    const known = prepared.get(claim.uid);
    const shown = devices.map(({ pool, device, shareId, gpuUuid, cores, memoryBlocks: blocks }): DeviceStatus => {
      const live = admin ? null : liveLimit(slice, gpuUuid);
      const memoryBytes = live?.memoryBytes ?? blocks * MEMORY_BLOCK_BYTES;
      return {
        pool,
        device,
        shareId,
        data: admin
          ? { access: 'admin' }
          : {
              slice,
              cores,
              memoryBytes: blocks * MEMORY_BLOCK_BYTES,
              shareLimit: live?.share ?? cores,
              memoryLimitBytes: memoryBytes,
              ...((live?.softLimit ?? null) === null ? {} : { softLimit: live?.softLimit ?? 0 }),
            },
      };
    });
    prepared.set(claim.uid, {
      claim,
      since: Math.max(known?.since ?? 0, chargedAt),
      devices: [...(known?.devices ?? []), ...shown],
    });
  }
  return [...prepared.values()];
}
