import type { ContainerRef } from '../ledger/allocation.js';
import type { ClaimUnit, UnitDevice } from '../ledger/claim-unit.js';
import { describeClaim } from '../ledger/claim-unit.js';
import type { Gpu } from '../gpu.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../resources.js';
import { deviceName, DRIVER_NAME, mainRequest, unitId } from './names.js';
import type { AllocationResult, ResourceClaim } from './resource-claim.js';
import { settingsOf } from './slice-config.js';

/** As many GPUs as one slice can list. */
const MOST_GPUS = 16;

/** The capacities of a device, as they are published. */
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
 * What a claim was allocated on this node, request by request. A claim that has nothing of this driver gives no units.
 * What cannot be given as it was allocated is refused as a whole, with a sentence for the owner of the pod.
 */
export function unitsOfAllocation(claim: ResourceClaim, { pool, gpus, now }: UnitContext): ReadUnits {
  const name = describeClaim(claim);
  const wrong = (reason: string): ReadUnits => ({ ok: false, reason: `${name}${reason}` });
  if (claim.allocation === null) return wrong(' is not allocated');
  const ours = claim.allocation.results.filter(({ driver }) => driver === DRIVER_NAME);
  const byDevice = new Map(gpus.map((gpu) => [deviceName(gpu.uuid), gpu]));
  const requests = new Map<string, AllocationResult[]>();
  for (const result of ours) {
    if (result.pool !== pool)
      return wrong(` has device ${result.device} of pool ${result.pool}, this node's pool is ${pool}`);
    if (!byDevice.has(result.device)) return wrong(`: device ${result.device} is not on this node any more`);
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
    if (new Set(devices.map(({ gpuUuid }) => gpuUuid)).size > MOST_GPUS)
      return wrong(`: request ${request} has ${devices.length} GPUs; ${MOST_GPUS} at most`);
    const id = unitId(claim.uid, request);
    const { uid, namespace, name: claimName } = claim;
    units.push({
      id,
      claim: { uid, namespace, name: claimName },
      request,
      devices,
      admin: results.every(({ adminAccess }) => adminAccess),
      softLimit: settings.settings.softLimit,
      slice: id,
      consumers: [],
      phase: 'preparing',
      bookedAt: now,
      missingSince: null,
    });
  }
  return { ok: true, units };
}

/**
 * Cores and blocks of a result: what it consumes, or the whole GPU; nothing for admin access. Null where these are no
 * whole numbers.
 */
function amountsOf(
  result: AllocationResult,
  gpu: Gpu,
): { readonly cores: number; readonly memoryBlocks: number } | null {
  if (result.adminAccess) return { cores: 0, memoryBlocks: 0 };
  const capacity = (name: string): number | undefined =>
    result.consumedCapacity?.get(name) ?? result.consumedCapacity?.get(`${DRIVER_NAME}/${name}`);
  const cores = capacity(CORES_CAPACITY) ?? CORES_PER_GPU;
  const bytes = capacity(MEMORY_CAPACITY);
  const blocks = bytes === undefined ? memoryBlocks(gpu.memoryBytes) : bytes / MEMORY_BLOCK_BYTES;
  const sound =
    Number.isInteger(cores) && cores >= 1 && cores <= CORES_PER_GPU && Number.isInteger(blocks) && blocks >= 1;
  return sound ? { cores, memoryBlocks: blocks } : null;
}

/** A container of a pod, and which requests of which claims it uses. */
export interface ClaimUser {
  readonly container: ContainerRef;
  readonly uses: readonly {
    readonly claim: string;
    /** Main request; null: all of the claim. */
    readonly request: string | null;
  }[];
}

export type Sliced =
  { readonly ok: true; readonly units: readonly ClaimUnit[] } | { readonly ok: false; readonly reason: string };

/**
 * Puts units that one container uses together into one slice, since a container has one: its directory lists the GPUs
 * of all of them. `units` are those of the claims of one pod. `settled` are units that containers of other pods use
 * already: their slice cannot change any more. A unit that no container is known to use stays by itself. Units on one
 * GPU can share a slice only where the same containers use both: the slice then has the sum.
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
        'cannot be used together, as another pod uses one of them already; ask for these GPUs in one claim',
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
      reason: `container ${container} would have GPU ${gpu} by ${labelOf(unit)} and ${labelOf(twin)}, of which one is shared with other containers: use one request, or the constraint distinctAttribute: ${DRIVER_NAME}/uuid`,
    };
  }
  return { ok: true, units: sliced };
}

function refuseSlices(container: ContainerRef, units: readonly ClaimUnit[], why: string): Sliced {
  return { ok: false, reason: `container ${container.container}: ${units.map(labelOf).join(' and ')} ${why}` };
}

const labelOf = ({ claim, request }: ClaimUnit): string => `${describeClaim(claim)} request ${request}`;
