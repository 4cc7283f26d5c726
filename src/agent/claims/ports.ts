import type { ClaimUser } from '../../gpu/claims/claim-units.js';
import type { ClaimRef, ResourceClaim } from '../../gpu/claims/resource-claim.js';
import type { ClaimUnit } from '../../gpu/ledger/claim-unit.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import type { RequestRefusal } from '../../gpu/request.js';

/** Charges allocated claims and creates their files. */
export interface UnitAllocator {
  readonly state: LedgerState;
  /** Prepares all units of one claim, or none. */
  prepare(
    units: readonly ClaimUnit[],
    givenUp: () => boolean,
  ): Promise<
    | {
        readonly ok: true;
        readonly units: readonly { readonly unit: ClaimUnit; readonly cdiDevices: readonly string[] }[];
      }
    | RequestRefusal
  >;
  release(claimUid: string): Promise<void>;
  /** Frees units for which `isOver` is true, unless processes of their containers still run. */
  freeOver(isOver: (unit: ClaimUnit) => boolean): Promise<void>;
  onReleased(listener: () => void): () => void;
}

/** MIG instances that exist while claims have them. */
export interface InstanceSource {
  /** The use of instances by one call that prepares claims. */
  use(): InstanceUse;
  /** Destroys the instances that no claim has. */
  destroyUnused(): Promise<void>;
}

export interface InstanceUse {
  /** Creates the instances of a claim's allocation that do not exist yet. They stay at least until `end`. */
  ensure(claim: ResourceClaim): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
  /** Destroys what no unit of the ledger has. */
  end(): Promise<void>;
}

/** The containers of a pod with the claims that they use; null for a pod that is not known (yet). */
export interface ClaimPods {
  claimUsers(podUid: string): readonly ClaimUser[] | null;
  /** UIDs of the known pods that use claims. */
  podsWithClaims(): readonly string[];
  /**
   * Calls `listener` for pods that appear, go or change the claims that they use; the returned function unsubscribes.
   */
  onClaimUsers(listener: (podUid: string) => void): () => void;
}

/** Receives refusals of claims; must not block and must not throw. */
export interface ClaimRefusals {
  refused(claim: ClaimRef, reason: string): void;
  /** The scheduler gave the claim amounts that `holders` have. */
  overlapped(claim: ClaimRef, reason: string, holders: readonly ClaimUnit[]): void;
}

/** Reads ResourceClaims from the API server. */
export interface ClaimSource {
  read(claim: ClaimRef, timeoutMs: number): Promise<ReadClaim>;
}

export type ReadClaim =
  | { readonly kind: 'found'; readonly claim: ResourceClaim }
  /** No claim has this name, or the claim of this name has another UID. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A device in the form that the kubelet gets. */
export interface PreparedDevice {
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | null;
  readonly cdiDevice: string;
}

export type PreparedClaim =
  { readonly ok: true; readonly devices: readonly PreparedDevice[] } | { readonly ok: false; readonly reason: string };

/** The kubelet's calls to a driver. */
export interface ClaimHandler {
  /** Answers for every claim, by UID. `givenUp` returns true once the kubelet no longer waits. */
  prepare(claims: readonly ClaimRef[], givenUp: () => boolean): Promise<ReadonlyMap<string, PreparedClaim>>;
  unprepare(claim: ClaimRef): Promise<void>;
}

/** Health of one published device. */
export interface DeviceHealth {
  readonly pool: string;
  readonly device: string;
  readonly healthy: boolean;
  /** Why it is unhealthy; empty for a healthy device. */
  readonly message: string;
}

export interface HealthSource {
  health(): readonly DeviceHealth[];
  onChange(listener: () => void): () => void;
}
