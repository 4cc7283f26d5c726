import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeLimits } from '../../src/abi/limits-file.js';
import { deviceName, poolName, unitId } from '../../src/gpu/claims/names.js';
import type { ClaimRef } from '../../src/gpu/claims/resource-claim.js';
import type { ClaimUnit } from '../../src/gpu/ledger/claim-unit.js';
import { MEMORY_BLOCK_BYTES } from '../../src/gpu/resources.js';
import { ClaimManager } from '../../src/simulation/kubelet/claim-manager.js';
import { NODE_NAME } from '../agent/cluster.js';
import type { ApiServer } from '../harness/api-server/api-server.js';
import { DRA_TYPES } from '../harness/api-server/dra-types.js';
import { GPUS } from './node.js';
import type { AgentConfig } from '../../src/agent/config.js';

/** Memory of a simulated GPU in blocks. */
const BLOCKS = 64;

const SHAPES: readonly (readonly [cores: number, memoryBlocks: number])[] = [
  [10, 4],
  [20, 8],
  [30, 16],
  [50, 32],
  [100, BLOCKS],
];

export const uuidOf = (index: number): string => `GPU-0000000${index}-0000-0000-0000-00000000000${index}`;

interface AllocatedClaim extends ClaimRef {
  readonly gpu: number;
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** A pod with claims, as the scheduler, the API server and the kubelet know it. */
export interface ClaimPod {
  readonly uid: string;
  readonly name: string;
  readonly claims: readonly AllocatedClaim[];
  /** `waiting`: the kubelet still has to prepare its claims; `leaving`: it ended, and its claims are to be released. */
  state: 'waiting' | 'prepared' | 'leaving';
}

export type ClaimStep =
  { readonly done: true } | { readonly done: false; readonly reason: string; readonly refused: boolean };

/**
 * Pods with claims on a node whose agent is killed: the scheduler's allocations from the published ResourceSlices, the
 * objects at the API server, and the kubelet's calls. All of it outlives the agent.
 */
export class ClaimPods {
  readonly pods: ClaimPod[] = [];
  readonly manager: ClaimManager;
  /** Claims whose pods were deleted by force: nobody told the agent. */
  readonly #forgotten = new Set<string>();
  readonly #server: ApiServer;
  readonly #random: () => number;
  readonly #prefix: string;
  #serial = 0;

  constructor(config: AgentConfig, server: ApiServer, random: () => number, prefix: string) {
    this.manager = new ClaimManager(config.pluginRegistryPath);
    this.#server = server;
    this.#random = random;
    this.#prefix = prefix;
    server.define(...DRA_TYPES);
  }

  /** GPUs that the node publishes now. */
  published(): readonly number[] {
    const names = this.#server
      .all('resourceslices')
      .flatMap(({ spec }) => (spec as { readonly devices: readonly { readonly name: string }[] }).devices);
    return Array.from({ length: GPUS }, (_, index) => index).filter((index) =>
      names.some(({ name }) => name === deviceName(uuidOf(index))),
    );
  }

  /** The scheduler binds a pod with one or two claims to this node; null if nothing fits. */
  schedule(): ClaimPod | null {
    const name = `${this.#prefix}-c${(this.#serial += 1)}`;
    const claims: AllocatedClaim[] = [];
    for (let at = 0; at < (this.#random() < 0.7 ? 1 : 2); at += 1) {
      const shape = SHAPES[Math.floor(this.#random() * SHAPES.length)] ?? [10, 4];
      const claim = this.#allocate(`${name}-${at}`, shape, claims);
      if (claim === null) return null;
      claims.push(claim);
    }
    return this.#bind(name, claims);
  }

  /** The scheduler binds a pod with a claim for this whole GPU. */
  scheduleWhole(gpu: number): ClaimPod {
    const name = `${this.#prefix}-c${(this.#serial += 1)}`;
    const amounts = { gpu, cores: 100, memoryBlocks: BLOCKS };
    return this.#bind(name, [{ uid: `uid-${name}`, namespace: 'default', name, ...amounts }]);
  }

  /** The kubelet prepares the claims of a pod. */
  async prepare(pod: ClaimPod): Promise<ClaimStep> {
    try {
      const answers = await this.manager.prepare(pod.uid, pod.claims.map(refOf));
      const refusal = [...answers.values()].find((answer) => !answer.ok);
      if (refusal?.ok === false) return { done: false, reason: refusal.reason, refused: true };
      pod.state = 'prepared';
      return { done: true };
    } catch (error) {
      return { done: false, reason: (error as Error).message, refused: false };
    }
  }

  /** The pod has ended: the kubelet releases its claims, and then they are deleted. */
  async end(pod: ClaimPod): Promise<ClaimStep> {
    pod.state = 'leaving';
    try {
      await this.manager.unprepare(pod.uid);
    } catch (error) {
      return { done: false, reason: (error as Error).message, refused: false };
    }
    this.#delete(pod);
    return { done: true };
  }

  /** The pod is deleted by force: the kubelet forgets it, and no call tells the agent. */
  async forget(pod: ClaimPod): Promise<void> {
    for (const { uid } of pod.claims) this.#forgotten.add(uid);
    await this.manager.forget(pod.uid);
    this.#delete(pod);
  }

  /** The kubelet starts again: it prepares the claims of all its pods again. */
  restart(): void {
    this.manager.restart();
    for (const pod of this.pods) if (pod.state === 'prepared') pod.state = 'waiting';
  }

  /**
   * Differences between prepared pods and the agent: a claim that the ledger lacks or has otherwise, a slice without
   * limits or with wrong ones, a CDI file that is missing.
   */
  async faults(config: AgentConfig, units: readonly ClaimUnit[]): Promise<string[]> {
    const faults: string[] = [];
    const byId = new Map(units.map((unit) => [unit.id, unit]));
    for (const { name, claims, state } of this.pods) {
      if (state !== 'prepared') continue;
      const slices = new Set<string>();
      for (const { uid, gpu, cores, memoryBlocks } of claims) {
        const unit = byId.get(unitId(uid, 'gpu'));
        if (unit === undefined) {
          faults.push(`${name}: the ledger does not know claim ${uid}`);
          continue;
        }
        slices.add(unit.slice);
        const has = unit.devices.map((device) => `${device.gpuUuid} ${device.cores}/${device.memoryBlocks}`).join();
        const wanted = `${uuidOf(gpu)} ${cores}/${memoryBlocks}`;
        if (has !== wanted || unit.phase !== 'prepared')
          faults.push(`${name}: claim ${uid} is ${unit.phase} with ${has} instead of ${wanted}`);
        if (!existsSync(join(config.cdiPath, `tencent.com-vcuda_${unit.id}.json`)))
          faults.push(`${name}: claim ${uid} has no CDI file`);
      }
      if (slices.size > 1) faults.push(`${name}: its container has ${slices.size} slices`);
      for (const slice of slices) faults.push(...(await limitFaults(config, slice, name, claims)));
    }
    return faults;
  }

  /** Units and CDI files that belong to no pod; forced deletions leave some until their room is needed. */
  async leftOver(config: AgentConfig, units: readonly ClaimUnit[]): Promise<string[]> {
    const living = new Set(this.pods.flatMap(({ claims }) => claims.map(({ uid }) => uid)));
    const faults = units
      .filter(({ claim }) => !living.has(claim.uid) && !this.#forgotten.has(claim.uid))
      .map(({ claim }) => `claim ${claim.uid} has ended and is still allocated`);
    const known = new Set(units.map(({ id }) => `tencent.com-vcuda_${id}.json`));
    const files = existsSync(config.cdiPath) ? await readdir(config.cdiPath) : [];
    return [...faults, ...files.filter((name) => !known.has(name)).map((name) => `CDI file ${name} is nobody's`)];
  }

  #allocate(
    name: string,
    [cores, memoryBlocks]: readonly [number, number],
    also: readonly AllocatedClaim[],
  ): AllocatedClaim | null {
    const claims = [...this.pods.flatMap((pod) => pod.claims), ...also];
    const gpu = this.published().find((index) => {
      const held = claims.filter((claim) => claim.gpu === index);
      return (
        held.reduce((sum, claim) => sum + claim.cores, cores) <= 100 &&
        held.reduce((sum, claim) => sum + claim.memoryBlocks, memoryBlocks) <= BLOCKS
      );
    });
    return gpu === undefined ? null : { uid: `uid-${name}`, namespace: 'default', name, gpu, cores, memoryBlocks };
  }

  #bind(name: string, claims: readonly AllocatedClaim[]): ClaimPod {
    const pod: ClaimPod = { uid: `uid-${name}`, name, claims, state: 'waiting' };
    this.pods.push(pod);
    for (const claim of claims) this.#server.seed('resourceclaims', claimObject(claim, pod.uid));
    this.#server.seed('pods', podObject(pod));
    return pod;
  }

  #delete(pod: ClaimPod): void {
    for (const { namespace, name } of pod.claims) this.#server.remove('resourceclaims', namespace, name);
    this.#server.remove('pods', 'default', pod.name);
    this.pods.splice(this.pods.indexOf(pod), 1);
  }
}

async function limitFaults(
  config: AgentConfig,
  slice: string,
  name: string,
  claims: readonly AllocatedClaim[],
): Promise<string[]> {
  const path = join(config.virtualManagerPath, slice, 'vgpu.limits');
  const read = await readFile(path).then(decodeLimits, (error: Error) => ({
    ok: false as const,
    reason: error.message,
  }));
  if (!read.ok) return [`${name}: ${read.reason}`];
  const gpus = [...new Set(claims.map(({ gpu }) => gpu))];
  const wanted = gpus.map((gpu) => {
    const parts = claims.filter((claim) => claim.gpu === gpu);
    const cores = parts.reduce((sum, part) => sum + part.cores, 0);
    const blocks = parts.reduce((sum, part) => sum + part.memoryBlocks, 0);
    return `${uuidOf(gpu)} ${cores}/${cores === 100 && blocks === BLOCKS ? 'all' : blocks}`;
  });
  const has = read.limits.devices.map(
    ({ uuid, share, memoryBytes }) =>
      `${uuid} ${share}/${memoryBytes === null ? 'all' : memoryBytes / MEMORY_BLOCK_BYTES}`,
  );
  return has.sort().join() === wanted.sort().join()
    ? []
    : [`${name}: limits ${has.join()} instead of ${wanted.join()}`];
}

const refOf = ({ uid, namespace, name }: AllocatedClaim): ClaimRef => ({ uid, namespace, name });

function claimObject({ uid, namespace, name, gpu, cores, memoryBlocks }: AllocatedClaim, podUid: string) {
  const result = {
    request: 'gpu',
    driver: 'gpu.tencent.com',
    pool: poolName(NODE_NAME),
    device: deviceName(uuidOf(gpu)),
    shareID: `share-${name}`,
    consumedCapacity: { cores: String(cores), memory: `${memoryBlocks * 256}Mi` },
  };
  return {
    metadata: { name, namespace, uid },
    spec: {},
    status: {
      reservedFor: [{ resource: 'pods', name: podUid, uid: podUid }],
      allocation: { devices: { results: [result], config: [] } },
    },
  };
}

function podObject({ uid, name, claims }: ClaimPod) {
  return {
    metadata: { name, namespace: 'default', uid },
    spec: {
      nodeName: NODE_NAME,
      resourceClaims: claims.map((claim, at) => ({ name: `g${at}`, resourceClaimName: claim.name })),
      containers: [{ name: 'main', resources: { claims: claims.map((_, at) => ({ name: `g${at}` })) } }],
    },
    status: { phase: 'Pending' },
  };
}
