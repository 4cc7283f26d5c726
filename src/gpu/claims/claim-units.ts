import type { ContainerRef } from '../ledger/allocation.js';
import type { ClaimUnit, UnitDevice } from '../ledger/claim-unit.js';
import { describeClaim } from '../ledger/claim-unit.js';
import type { Gpu } from '../gpu.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import { deviceName, deviceNameOf, DRIVER_NAME, mainRequest, unitId } from './names.js';
import type { AllocationResult, ResourceClaim } from './resource-claim.js';
import { settingsOf } from './slice-config.js';

/** A slice can list at most this many GPUs. */
export const MAX_GPUS = 16;

/** The published capacities of a device. */
export const CORES_CAPACITY = 'cores';
export const MEMORY_CAPACITY = 'memory';

export interface UnitContext {
  readonly pool: string;
  readonly gpus: readonly Gpu[];
  readonly now: number;
}

export type ReadUnits =
  { readonly ok: true; readonly units: readonly ClaimUnit[] } | { readonly ok: false; readonly reason: string };

/**
 * The units of a claim's allocation on this node, one per request; none if the claim has no device of this driver. If
 * one device cannot be provided as allocated, the whole claim is refused, with a sentence for the pod's owner.
 */
export function unitsOfAllocation(claim: ResourceClaim, { pool, gpus, now }: UnitContext): ReadUnits {
  const name = describeClaim(claim);
  const wrong = (reason: string): ReadUnits => ({ ok: false, reason: `${name}${reason}` });
  if (claim.allocation === null) return wrong(' is not allocated');
  const ours = claim.allocation.results.filter(({ driver }) => driver === DRIVER_NAME);
  const byDevice = new Map(gpus.map((gpu) => [deviceNameOf(gpu), gpu]));
  const requests = new Map<string, AllocationResult[]>();
  for (const result of ours) {
    if (result.pool !== pool)
      return wrong(` has device ${result.device} of pool ${result.pool}, this node's pool is ${pool}`);
    if (!byDevice.has(result.device)) return wrong(`: ${describeMissing(result.device, gpus)}`);
    const main = mainRequest(result.request);
    requests.set(main, [...(requests.get(main) ?? []), result]);
  }
  const units: ClaimUnit[] = [];
  for (const [request, results] of requests) {
    const settings = settingsOf(claim.allocation.configs, results[0]?.request ?? request);
    if (!settings.ok) return wrong(`, ${settings.reason}`);
    const devices: UnitDevice[] = [];
    for (const result of results) {
      const gpu = byDevice.get(result.device) as Gpu;
      const amounts = amountsOf(result, gpu);
      if (amounts === null)
        return wrong(`: the amounts of device ${result.device} are not whole cores and blocks of 256 MiB`);
      const { pool: devicePool, device, shareId } = result;
      devices.push({ request: result.request, pool: devicePool, device, shareId, gpuUuid: gpu.uuid, ...amounts });
    }
    if (new Set(devices.map(({ gpuUuid }) => gpuUuid)).size > MAX_GPUS)
      return wrong(`: request ${request} has ${devices.length} GPUs; at most ${MAX_GPUS} are possible`);
    const id = unitId(claim.uid, request);
    const { uid, namespace, name: claimName } = claim;
    units.push({
      id,
      claim: { uid, namespace, name: claimName },
      ...(claim.nameInPod === null ? {} : { nameInPod: claim.nameInPod }),
      request,
      devices,
      admin: results.every(({ adminAccess }) => adminAccess),
      softLimit: settings.settings.softLimit,
      priority: settings.settings.priority,
      slice: id,
      consumers: [],
      phase: 'preparing',
      chargedAt: now,
      missingSince: null,
    });
  }
  return { ok: true, units };
}

/** Cores and bytes that a result consumes; null bytes: all memory of the device. Administrators consume nothing. */
export function consumedOf({ adminAccess, consumedCapacity }: AllocationResult): {
  readonly cores: number;
  readonly memoryBytes: number | null;
} {
  if (adminAccess) return { cores: 0, memoryBytes: 0 };
  const capacity = (name: string): number | undefined =>
    consumedCapacity?.get(name) ?? consumedCapacity?.get(`${DRIVER_NAME}/${name}`);
  return { cores: capacity(CORES_CAPACITY) ?? CORES_PER_GPU, memoryBytes: capacity(MEMORY_CAPACITY) ?? null };
}

/** Why the node lacks a device that it published before. */
function describeMissing(device: string, gpus: readonly Gpu[]): string {
  const divided = gpus.find(({ instance }) => instance !== undefined && deviceName(instance.parentUuid) === device);
  return divided?.instance === undefined
    ? `device ${device} is not on this node any more`
    : `GPU ${divided.instance.parentUuid} is in MIG mode now, and its instances are devices of their own`;
}

/**
 * Cores and blocks of a result: the consumed capacity, or the whole GPU; 0 for administrator access. Null if they are
 * not whole numbers.
 */
function amountsOf(
  result: AllocationResult,
  gpu: Gpu,
): { readonly cores: number; readonly memoryBlocks: number } | null {
  if (result.adminAccess) return { cores: 0, memoryBlocks: 0 };
  const { cores, memoryBytes } = consumedOf(result);
  const blocks = memoryBytes === null ? memoryBlocks(gpu.memoryBytes) : memoryBytes / MEMORY_BLOCK_BYTES;
  const sound =
    Number.isInteger(cores) && cores >= 1 && cores <= CORES_PER_GPU && Number.isInteger(blocks) && blocks >= 1;
  return sound ? { cores, memoryBlocks: blocks } : null;
}

/** A container of a pod, and a claim request that it uses. */
export interface ClaimUser {
  readonly container: ContainerRef;
  readonly uses: readonly {
    readonly claim: string;
    /** Main request; null: all requests of the claim. */
    readonly request: string | null;
  }[];
}

/** Whether a container names the claim, which is in its namespace, and the unit's request. */
export function isUserOf(
  { container, uses }: ClaimUser,
  { claim, request }: Pick<ClaimUnit, 'claim' | 'request'>,
): boolean {
  return (
    container.namespace === claim.namespace &&
    uses.some((use) => use.claim === claim.name && (use.request === null || use.request === request))
  );
}

export type Sliced =
  { readonly ok: true; readonly units: readonly ClaimUnit[] } | { readonly ok: false; readonly reason: string };

/**
 * Assigns slices to the units of one pod's claims. A container has one slice, whose directory lists all its GPUs, so
 * units that one container uses together share a slice. `settled` are units that containers of other pods use already:
 * their slice cannot change. A unit without a known container has its own slice. Units on one GPU can share a slice
 * only if the same containers use both: the slice then has the sum.
 */
export function sliceUnits(
  units: readonly ClaimUnit[],
  users: readonly ClaimUser[],
  settled: ReadonlySet<string> = new Set(),
): Sliced {
  const usedBy = new Map<string, string[]>(units.map(({ id }) => [id, []]));
  const slice = new Map(units.map((unit) => [unit.id, unit.slice]));
  const consumers = new Map<string, ContainerRef[]>(units.map(({ id, consumers: known }) => [id, [...known]]));
  for (const { container, uses } of users) {
    const used = units.filter(
      ({ claim, request, admin }) =>
        !admin && uses.some((use) => use.claim === claim.name && (use.request === null || use.request === request)),
    );
    for (const { id } of used) {
      usedBy.get(id)?.push(container.container);
      const known = consumers.get(id) ?? [];
      if (!known.some((other) => other.podUid === container.podUid && other.container === container.container))
        known.push(container);
    }
    const joined = new Set(used.map(({ id }) => slice.get(id) ?? id));
    if (joined.size < 2) continue;
    if (used.some(({ id }) => settled.has(id)))
      return refuseSlices(
        container,
        used,
        'cannot be used together, because another pod uses one of them already; ask for these GPUs in one claim',
      );
    const target = [...joined].sort()[0] ?? '';
    for (const [id, present] of slice) if (joined.has(present)) slice.set(id, target);
  }
  const sliced = units.map((unit) => ({
    ...unit,
    slice: slice.get(unit.id) ?? unit.id,
    consumers: consumers.get(unit.id) ?? [],
  }));
  for (const unit of sliced) {
    const twin = sliced.find(
      (other) =>
        other.id < unit.id &&
        other.slice === unit.slice &&
        !other.admin &&
        other.devices.some(({ gpuUuid }) => unit.devices.some((device) => device.gpuUuid === gpuUuid)) &&
        (usedBy.get(other.id) ?? []).join('\n') !== (usedBy.get(unit.id) ?? []).join('\n'),
    );
    if (twin === undefined || unit.admin) continue;
    const gpu =
      unit.devices.find(({ gpuUuid }) => twin.devices.some((device) => device.gpuUuid === gpuUuid))?.gpuUuid ?? '';
    const container = (usedBy.get(unit.id) ?? []).find((name) => usedBy.get(twin.id)?.includes(name)) ?? '';
    return {
      ok: false,
      reason: `container ${container} would get GPU ${gpu} from ${labelOf(unit)} and ${labelOf(twin)}, and shares one of them with other containers: use one request, or the constraint distinctAttribute: ${DRIVER_NAME}/uuid`,
    };
  }
  return { ok: true, units: sliced };
}

function refuseSlices(container: ContainerRef, units: readonly ClaimUnit[], why: string): Sliced {
  return { ok: false, reason: `container ${container.container}: ${units.map(labelOf).join(' and ')} ${why}` };
}

const labelOf = ({ claim, request }: ClaimUnit): string => `${describeClaim(claim)} request ${request}`;
