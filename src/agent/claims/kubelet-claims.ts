import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { readStateFile } from '../../host/state-file.js';

/**
 * File name in the kubelet's root. Its format is not documented, so its content is evidence and never decides alone.
 */
export const KUBELET_CLAIMS_FILE = 'dra_manager_state';

/** A claim that the kubelet has prepared by this driver. */
export interface KubeletClaim {
  readonly claim: ClaimRef;
  readonly podUids: readonly string[];
  readonly devices: readonly {
    readonly pool: string;
    readonly device: string;
    readonly shareId: string | null;
    /** Names of main requests. */
    readonly requests: readonly string[];
  }[];
}

export type KubeletClaims =
  { readonly ok: true; readonly claims: readonly KubeletClaim[] } | { readonly ok: false; readonly reason: string };

/** Reads the DRA manager's checkpoint; a missing file means that no claim was ever prepared. Never throws. */
export async function readKubeletClaims(path: string): Promise<KubeletClaims> {
  try {
    return parseKubeletClaims(await readStateFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { ok: true, claims: [] };
    return { ok: false, reason: (error as Error).message };
  }
}

function parseKubeletClaims(text: string): KubeletClaims {
  try {
    const { Data: data } = JSON.parse(text) as { readonly Data?: unknown };
    const state = (typeof data === 'string' ? JSON.parse(data) : data) as {
      readonly ClaimInfoStateList?: unknown;
    } | null;
    const list = state?.ClaimInfoStateList ?? [];
    if (!Array.isArray(list)) return { ok: false, reason: 'ClaimInfoStateList is not a list' };
    return { ok: true, claims: (list as readonly unknown[]).flatMap((entry) => readClaim(entry) ?? []) };
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message}` };
  }
}

interface StoredClaim {
  readonly ClaimUID?: unknown;
  readonly ClaimName?: unknown;
  readonly Namespace?: unknown;
  readonly PodUIDs?: unknown;
  readonly DriverState?: Readonly<Record<string, { readonly Devices?: unknown } | null>> | null;
}

function readClaim(entry: unknown): KubeletClaim | null {
  const stored = (entry ?? {}) as StoredClaim;
  const devices = stored.DriverState?.[DRIVER_NAME]?.Devices;
  if (
    typeof stored.ClaimUID !== 'string' ||
    typeof stored.ClaimName !== 'string' ||
    typeof stored.Namespace !== 'string'
  )
    return null;
  if (!Array.isArray(devices)) return null;
  return {
    claim: { uid: stored.ClaimUID, namespace: stored.Namespace, name: stored.ClaimName },
    podUids: podUids(stored.PodUIDs),
    devices: (devices as readonly unknown[]).flatMap((device) => {
      const { PoolName, DeviceName, ShareID, RequestNames } = (device ?? {}) as Readonly<Record<string, unknown>>;
      if (typeof PoolName !== 'string' || typeof DeviceName !== 'string') return [];
      const requests = Array.isArray(RequestNames) ? (RequestNames as readonly unknown[]) : [];
      return [
        {
          pool: PoolName,
          device: DeviceName,
          shareId: typeof ShareID === 'string' && ShareID !== '' ? ShareID : null,
          requests: requests.filter((request): request is string => typeof request === 'string'),
        },
      ];
    }),
  };
}

/** Go writes a set as an object with empty values. */
function podUids(set: unknown): string[] {
  if (Array.isArray(set)) return (set as readonly unknown[]).filter((uid): uid is string => typeof uid === 'string');
  return typeof set === 'object' && set !== null ? Object.keys(set) : [];
}
