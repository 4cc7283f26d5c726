import type { ClaimUser } from '../../gpu/claims/claim-units.js';
import type { ClaimRef, ResourceClaim } from '../../gpu/claims/resource-claim.js';
import type { ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import type { Refusal } from '../../gpu/request.js';

/** Books and makes what claims were allocated. */
export interface UnitAllocator {
  readonly state: LedgerState;
  /** All units of one claim, or none. */
  prepare(
    units: readonly ClaimUnit[],
    givenUp: () => boolean,
  ): Promise<
    | {
        readonly ok: true;
        readonly units: readonly { readonly unit: ClaimUnit; readonly cdiDevices: readonly string[] }[];
      }
    | Refusal
  >;
  release(claimUid: string): Promise<void>;
  /** Frees units for which there is evidence, unless processes of their containers still run. */
  freeOver(isOver: (unit: ClaimUnit) => boolean): Promise<void>;
  onReleased(listener: () => void): () => void;
}

/** Which containers of a pod use which claims; null for a pod that is not known (yet). */
export interface ClaimPods {
  claimUsers(podUid: string): readonly ClaimUser[] | null;
}

/** ResourceClaims at the API server. */
export interface ClaimSource {
  read(claim: ClaimRef, timeoutMs: number): Promise<ReadClaim>;
}

export type ReadClaim =
  | { readonly kind: 'found'; readonly claim: ResourceClaim }
  /** There is none of this name, or one of another UID. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A device as the kubelet is told of it. */
export interface PreparedDevice {
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly cdiDevice: string;
}

export type PreparedClaim =
  { readonly ok: true; readonly devices: readonly PreparedDevice[] } | { readonly ok: false; readonly reason: string };

/** What the kubelet asks of a driver. */
export interface ClaimHandler {
  /** Answers for every claim, by UID. `givenUp` tells whether the kubelet still waits. */
  prepare(claims: readonly ClaimRef[], givenUp: () => boolean): Promise<ReadonlyMap<string, PreparedClaim>>;
  unprepare(claim: ClaimRef): Promise<void>;
}

/** Health of one published device. */
export interface DeviceHealth {
  readonly pool: string;
  readonly device: string;
  readonly healthy: boolean;
  /** Why it is not; empty for a healthy one. */
  readonly message: string;
}

export interface HealthSource {
  health(): readonly DeviceHealth[];
  onChange(listener: () => void): () => void;
}
