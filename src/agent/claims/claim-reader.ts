import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { ALL_RESOURCE_CLAIMS, resourceClaimPath } from '../../kube/api-path.js';
import type { KubeClient } from '../../kube/client.js';
import { readResourceClaim } from '../../kube/claim-object.js';
import type { ClaimSource, ReadClaim } from './ports.js';

/** Time limit for reading one claim where something else answers too: the kubelet's data, or the next sweep. */
export const CLAIM_READ_MS = 3_000;

/** Reads claims from the API server one by one: a node needs few of a cluster's claims, and cannot select them. */
export class ClaimReader implements ClaimSource {
  readonly #client: KubeClient;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async read({ namespace, name, uid }: ClaimRef, timeoutMs: number): Promise<ReadClaim> {
    const answer = await this.#client.request({ method: 'GET', path: resourceClaimPath(namespace, name), timeoutMs });
    if (!answer.ok)
      return answer.code === 'not-found'
        ? { kind: 'gone' }
        : { kind: 'unknown', reason: `${answer.code}: ${answer.message}` };
    const claim = readResourceClaim(answer.body);
    if (claim === null) return { kind: 'unknown', reason: 'the answer is not a valid ResourceClaim' };
    return claim.uid === uid ? { kind: 'found', claim } : { kind: 'gone' };
  }

  /**
   * Names of this pool's devices that are allocated to any claim of the cluster; null without a complete answer of the
   * API server.
   */
  async allocatedDevices(pool: string): Promise<ReadonlySet<string> | null> {
    const answer = await this.#client.request({ method: 'GET', path: ALL_RESOURCE_CLAIMS });
    const items = answer.ok ? (answer.body as { readonly items?: unknown } | null)?.items : undefined;
    if (!Array.isArray(items)) return null;
    const devices = new Set<string>();
    for (const item of items as readonly unknown[]) {
      const claim = readResourceClaim(item);
      if (claim === null) return null;
      for (const result of claim.allocation?.results ?? [])
        if (result.driver === DRIVER_NAME && result.pool === pool) devices.add(result.device);
    }
    return devices;
  }
}
