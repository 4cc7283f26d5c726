import { basename, join } from 'node:path';
import { decodeLimits } from '../../abi/limits-file.js';
import { LIMITS_FILE } from '../../abi/vgpu-abi.js';
import { sliceUnits, unitsOfAllocation, type ClaimUser } from '../../gpu/claims/claim-units.js';
import { deviceNameOf, DRIVER_NAME, mainRequest, unitId } from '../../gpu/claims/names.js';
import type { Gpu } from '../../gpu/gpu.js';
import type { ClaimUnit, UnitDevice } from '../../gpu/ledger/claim-unit.js';
import type { LedgerState } from '../../gpu/ledger/state.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES, memoryBlocks } from '../../gpu/resources.js';
import type { Clock } from '../../host/clock.js';
import { wait } from '../../host/pause.js';
import { readReachableFile } from '../../host/reachable-file.js';
import type { Log } from '../../host/log.js';
import type { KubeletClaimsConfig } from './claims-config.js';
import type { ClaimRecords } from './claim-records.js';
import { CLAIM_READ_MS } from './claim-reader.js';
import { KUBELET_CLAIMS_FILE, readKubeletClaims, type KubeletClaim } from './kubelet-claims.js';
import type { ClaimPods, ClaimSource } from './ports.js';
import { kubeletFile } from '../device-plugin/index.js';
import type { CdiSpecs } from '../libraries/index.js';

/** How long adoption waits for the API server to name the containers of a claim without a record. */
const PODS_MS = 2_000;

/** Sources of this node about its claims, besides the checkpoint. */
export interface ClaimEvidence {
  /** The claims that the kubelet has prepared by this driver. */
  readonly kubelet: readonly KubeletClaim[];
  readonly records: readonly ClaimUnit[];
}

export async function claimEvidence(
  config: KubeletClaimsConfig,
  records: ClaimRecords,
  log: Log,
): Promise<ClaimEvidence> {
  const file = kubeletFile(config.pluginRegistryPath, config.hostRoot, KUBELET_CLAIMS_FILE);
  const known = await readKubeletClaims(file);
  if (!known.ok) log.warn({ file, reason: known.reason }, "the kubelet's claims cannot be read");
  return {
    kubelet: known.ok ? known.claims.filter(({ devices }) => devices.length > 0) : [],
    records: await records.read(log),
  };
}

export interface AdoptionOptions {
  readonly evidence: ClaimEvidence;
  /** The ledger as the checkpoint has it. */
  readonly state: LedgerState;
  readonly claims: ClaimSource;
  readonly pods: ClaimPods;
  readonly specs: Pick<CdiSpecs, 'sliceDirectoryOf'>;
  readonly virtualManagerPath: string;
  /** Name of this node's pool. */
  readonly pool: string;
  readonly clock: Clock;
}

/**
 * The units that containers hold and the ledger lacks, because the checkpoint is lost or old. A unit is what its record
 * says, else what the API server says, else what enforces its containers: the mount of its CDI specification and the
 * limits in that directory. The amounts of the last kind are assumed until the API server answers.
 */
export async function unitsToAdopt(options: AdoptionOptions): Promise<readonly ClaimUnit[]> {
  const { evidence, state } = options;
  const inLedger = new Set([...state.units.values()].map(({ claim }) => claim.uid));
  const held = evidence.kubelet.filter(({ claim }) => !inLedger.has(claim.uid));
  const recorded = held.flatMap((entry) => recordOf(entry, evidence.records) ?? []);
  const found = await Promise.all(
    held
      .filter((entry) => recordOf(entry, evidence.records) === null)
      .map(async (entry) => (await unitsOfServer(entry, options)) ?? (await unitsOnNode(entry, options))),
  );
  const unrecorded = shareAmounts(found.flat());
  // The kubelet's own record may be lost too, and then names no claim.
  const known = new Set([...inLedger, ...held.map(({ claim }) => claim.uid)]);
  const unnamed = isEmpty(state) ? evidence.records.filter(({ claim }) => !known.has(claim.uid)) : [];
  const alive = await Promise.all(unnamed.map((unit) => isAllocated(unit, options)));
  return [
    ...recorded,
    ...unnamed.filter((_, at) => alive[at]),
    ...(unrecorded.length === 0 ? [] : await withSlices(unrecorded, recorded, held, options)),
  ];
}

/** True when the ledger knows nothing of claims, as after the loss of the checkpoint. */
const isEmpty = ({ units, modes }: LedgerState): boolean => units.size === 0 && modes.size === 0;

/** The recorded units of a claim; null unless they have every device that the kubelet names. */
function recordOf({ claim, devices }: KubeletClaim, records: readonly ClaimUnit[]): readonly ClaimUnit[] | null {
  const units = records.filter((unit) => unit.claim.uid === claim.uid);
  const isRecorded = ({ device, requests }: KubeletClaim['devices'][number]): boolean =>
    units.some((unit) => requests.includes(unit.request) && unit.devices.some((known) => known.device === device));
  return units.length > 0 && devices.every(isRecorded) ? units : null;
}

async function unitsOfServer(
  { claim }: KubeletClaim,
  { claims, state, pool, clock }: AdoptionOptions,
): Promise<readonly ClaimUnit[] | null> {
  const read = await claims.read(claim, CLAIM_READ_MS);
  if (read.kind !== 'found') return null;
  const gpus = state.node.gpus.map(({ gpu }) => gpu);
  const units = unitsOfAllocation(read.claim, { pool, gpus, now: clock.now() });
  return units.ok ? units.units : null;
}

/**
 * The units of a claim as the kubelet names them, with the slices and limits that their containers have on this node.
 */
async function unitsOnNode(
  { claim, devices }: KubeletClaim,
  { state, specs, virtualManagerPath, clock }: AdoptionOptions,
): Promise<readonly ClaimUnit[]> {
  const byDevice = new Map(state.node.gpus.map(({ gpu }) => [deviceNameOf(gpu), gpu]));
  const units = new Map<string, ClaimUnit>();
  for (const { pool, device, shareId, requests } of devices) {
    const gpu = byDevice.get(device);
    if (gpu === undefined) continue;
    const request = mainRequest(requests[0] ?? '');
    const id = unitId(claim.uid, request);
    const directory = await specs.sliceDirectoryOf(id);
    const slice = directory === null ? id : basename(directory);
    const amounts = await enforced(join(virtualManagerPath, slice), gpu);
    const added: UnitDevice = { request, pool, device, shareId, gpuUuid: gpu.uuid, ...amounts };
    units.set(request, {
      id,
      claim,
      request,
      devices: [...(units.get(request)?.devices ?? []), added],
      admin: false,
      softLimit: null,
      slice,
      consumers: [],
      phase: 'prepared',
      isAssumed: true,
      chargedAt: clock.now(),
      missingSince: null,
    });
  }
  return [...units.values()];
}

/** The part of a GPU that the limits in a slice's directory give; the whole GPU if they do not name it. */
async function enforced(directory: string, gpu: Gpu): Promise<Pick<UnitDevice, 'cores' | 'memoryBlocks'>> {
  const whole = { cores: CORES_PER_GPU, memoryBlocks: memoryBlocks(gpu.memoryBytes) };
  const bytes = await readReachableFile(join(directory, LIMITS_FILE)).catch(() => null);
  const decoded = bytes === null ? null : decodeLimits(bytes);
  const limit = decoded?.ok === true ? decoded.limits.devices.find(({ uuid }) => uuid === gpu.uuid) : undefined;
  if (limit === undefined) return whole;
  return {
    cores: limit.share,
    memoryBlocks: limit.memoryBytes === null ? whole.memoryBlocks : Math.ceil(limit.memoryBytes / MEMORY_BLOCK_BYTES),
  };
}

/** The limits of a slice are the sum of its units: of several assumed units on one GPU the first has all of it. */
function shareAmounts(units: readonly ClaimUnit[]): readonly ClaimUnit[] {
  const counted = new Set<string>();
  return units.map((unit) => {
    if (unit.isAssumed !== true) return unit;
    const devices = unit.devices.map((device) => {
      const key = `${unit.slice} ${device.gpuUuid}`;
      if (counted.has(key)) return { ...device, cores: 0, memoryBlocks: 0 };
      counted.add(key);
      return device;
    });
    return { ...unit, devices };
  });
}

/** Whether a recorded claim that the kubelet does not name is still allocated here; true while this is unknown. */
async function isAllocated(unit: ClaimUnit, { claims, pool }: AdoptionOptions): Promise<boolean> {
  const read = await claims.read(unit.claim, CLAIM_READ_MS);
  if (read.kind !== 'found') return read.kind === 'unknown';
  const results = read.claim.allocation?.results ?? [];
  return results.some((result) => result.driver === DRIVER_NAME && result.pool === pool);
}

/** Gives units that one container uses together the same slice, and every unit its containers. */
async function withSlices(
  units: readonly ClaimUnit[],
  recorded: readonly ClaimUnit[],
  held: readonly KubeletClaim[],
  options: AdoptionOptions,
): Promise<readonly ClaimUnit[]> {
  const wanted = new Set(units.map(({ id }) => id));
  const all = new Map([...units, ...recorded].map((unit) => [unit.id, unit]));
  const settled = new Set(recorded.map(({ id }) => id));
  const uids = new Set(units.map(({ claim }) => claim.uid));
  const pods = new Set(held.flatMap(({ claim, podUids }) => (uids.has(claim.uid) ? podUids : [])));
  for (const [podUid, users] of await usersOf(pods, options)) {
    const claims = new Set(held.flatMap(({ claim, podUids }) => (podUids.includes(podUid) ? [claim.uid] : [])));
    const sliced = sliceUnits(
      [...all.values()].filter(({ claim }) => claims.has(claim.uid)),
      users,
      settled,
    );
    if (!sliced.ok) continue;
    for (const unit of sliced.units) {
      // The slice that a CDI specification names is the one that the container has.
      const before = all.get(unit.id);
      all.set(unit.id, before?.isAssumed === true ? { ...unit, slice: before.slice } : unit);
      settled.add(unit.id);
    }
  }
  return [...all.values()].filter(({ id }) => wanted.has(id));
}

/** The containers of these pods, as far as the API server names them in time. */
async function usersOf(
  podUids: ReadonlySet<string>,
  { pods, clock }: AdoptionOptions,
): Promise<readonly (readonly [podUid: string, users: readonly ClaimUser[]])[]> {
  const deadline = clock.now() + PODS_MS;
  while ([...podUids].some((uid) => pods.claimUsers(uid) === null) && clock.now() < deadline) await wait(clock, 50);
  return [...podUids].map((uid) => [uid, pods.claimUsers(uid) ?? []] as const);
}
