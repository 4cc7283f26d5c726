import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentConfig } from '../agent/config.js';
import { DRIVER_NAME, poolName } from '../gpu/claims/names.js';
import type { ClaimRef } from '../gpu/claims/resource-claim.js';
import type { Log } from '../host/log.js';
import { list, record, text } from '../kube/json.js';
import { wholeQuantity } from '../manifests/quantity.js';
import { ApiObjects } from './api-objects.js';
import { ClaimManager } from './kubelet/claim-manager.js';
import type { GivenContainer } from './kubelet/kubelet.js';
import { SimulatedNode } from './simulated-node.js';

export interface ClaimClusterOptions {
  /** Directory of all files. Keep the path short, because the length of socket paths is limited. */
  readonly directory: string;
  /** Description of the GPUs: JSON or the output of `nvidia-smi topo -m`. */
  readonly gpus: string;
  readonly config: Partial<AgentConfig>;
  readonly log: Log;
  /** The objects of a larger cluster; without them, the node is a cluster of its own. */
  readonly objects?: ApiObjects;
  readonly nodeName?: string;
  /** Namespace of pods and claims. */
  readonly namespace?: string;
}

export interface ShareRequest {
  readonly cores: number;
  readonly memoryMib: number;
}

/** A published GPU with what claims hold of it. */
interface OfferedGpu {
  readonly device: string;
  readonly uuid: string;
  readonly freeCores: number;
  readonly freeBytes: number;
}

export type StartedPod =
  | { readonly ok: true; readonly container: GivenContainer; readonly slice: string }
  | { readonly ok: false; readonly reason: string };

const READY_MS = 60_000;
/** A real kubelet waits 45 s for an answer, and the agent 20 s for room. */
const ROOM_MS = 300;

/**
 * A node that gives its GPUs through resource claims: the real agent on simulated GPUs, an emulated kubelet, and the
 * part of API server and scheduler that claims need. The scheduler takes the first device that has room, as the real
 * one does.
 */
export class ClaimCluster {
  readonly objects: ApiObjects;
  readonly node: SimulatedNode;
  readonly #nodeName: string;
  readonly #namespace: string;
  readonly #options: ClaimClusterOptions;
  readonly #kubelet: ClaimManager;

  constructor(options: ClaimClusterOptions) {
    const { directory, gpus, log, config, objects, nodeName = 'simulated', namespace = 'demo' } = options;
    this.objects = objects ?? new ApiObjects();
    this.#nodeName = nodeName;
    this.#namespace = namespace;
    const registry = join(directory, 'k/registry');
    this.#options = options;
    this.#kubelet = new ClaimManager(registry);
    this.node = new SimulatedNode({
      directory: join(directory, 'n'),
      gpus,
      log,
      seams: { claimPatience: { roomMs: ROOM_MS } },
      config: {
        standalone: false,
        kubeconfig: join(directory, 'kubeconfig'),
        nodeName,
        allocation: 'dra',
        pluginRegistryPath: registry,
        draPath: join(directory, 'k/dra'),
        ...config,
      },
    });
  }

  async start(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    if (this.#options.objects === undefined) {
      await this.objects.start();
      this.objects.put('nodes', { metadata: { name: this.#nodeName } });
    }
    await writeFile(join(this.#options.directory, 'kubeconfig'), this.objects.kubeconfig());
    await this.node.start();
    await this.#kubelet.register();
    await this.#until('the GPUs to be published', () => this.published() > 0);
  }

  async stop(): Promise<void> {
    await this.node.stop();
    if (this.#options.objects === undefined) await this.objects.stop();
  }

  /** The agent starts again, and the kubelet registers it. */
  async restartAgent(): Promise<void> {
    await this.node.stopAgent();
    await this.node.startAgent();
    await this.#kubelet.register();
  }

  /** Number of published GPUs. */
  published(): number {
    return this.#offered().length;
  }

  createClaim(name: string, { cores, memoryMib }: ShareRequest): void {
    const capacity = { requests: { cores: String(cores), memory: `${memoryMib}Mi` } };
    this.objects.put('resourceclaims', {
      metadata: { name, namespace: this.#namespace },
      spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'vgpu.tencent.com', capacity } }] } },
    });
  }

  annotateClaim(name: string, annotations: Readonly<Record<string, string>>): void {
    const claim = this.#claim(name);
    this.objects.put('resourceclaims', { ...claim, metadata: { ...claim.metadata, annotations } });
  }

  /**
   * Allocates the claim as the scheduler does; false if no GPU has room. `blindly`: ignores the amounts that other
   * claims hold.
   */
  schedule(name: string, blindly = false): boolean {
    const claim = this.#claim(name);
    const wanted = requestOf(claim);
    const gpu = this.#offered().find(
      ({ freeCores, freeBytes }) => blindly || (freeCores >= wanted.cores && freeBytes >= wanted.bytes),
    );
    if (gpu === undefined) return false;
    const result = {
      request: 'gpu',
      driver: DRIVER_NAME,
      pool: poolName(this.#nodeName),
      device: gpu.device,
      shareID: `share-of-${name}`,
      consumedCapacity: { cores: String(wanted.cores), memory: String(wanted.bytes) },
    };
    this.objects.put('resourceclaims', { ...claim, status: { allocation: { devices: { results: [result] } } } });
    return true;
  }

  /** A pod of one container starts with an allocated claim. */
  async startPod(pod: string, claimName: string): Promise<StartedPod> {
    const claim = this.#claim(claimName);
    const reserved = [...list(record(claim['status'])['reservedFor']), { resource: 'pods', name: pod, uid: pod }];
    this.objects.put('resourceclaims', { ...claim, status: { ...record(claim['status']), reservedFor: reserved } });
    this.objects.put('pods', {
      metadata: { name: pod, namespace: this.#namespace, uid: pod },
      spec: {
        nodeName: this.#nodeName,
        resourceClaims: [{ name: 'g', resourceClaimName: claimName }],
        containers: [{ name: 'main', resources: { claims: [{ name: 'g' }] } }],
      },
      status: { phase: 'Running' },
    });
    const ref = this.#refOf(claimName);
    const answer = (await this.#kubelet.prepare(pod, [ref])).get(ref.uid);
    if (answer === undefined) return { ok: false, reason: 'the agent did not answer for the claim' };
    if (!answer.ok) return answer;
    return this.#containerOf(
      answer.devices.flatMap(({ cdi_device_ids: ids }) => ids),
      answer.devices[0]?.device_name ?? '',
    );
  }

  /** A pod ends; its claim is deleted with its last pod. */
  async endPod(pod: string, claimName: string): Promise<void> {
    await this.#kubelet.unprepare(pod);
    this.objects.remove('pods', this.#namespace, pod);
    const claim = this.#claim(claimName);
    const reserved = list(record(claim['status'])['reservedFor']).filter((user) => record(user)['name'] !== pod);
    if (reserved.length === 0) this.objects.remove('resourceclaims', this.#namespace, claimName);
    else
      this.objects.put('resourceclaims', { ...claim, status: { ...record(claim['status']), reservedFor: reserved } });
  }

  /** Waits until `isSo`; rejects after a minute. */
  async #until(what: string, isSo: () => boolean): Promise<void> {
    for (let waitedMs = 0; !isSo(); waitedMs += 50) {
      if (waitedMs > READY_MS) throw new Error(`timed out waiting for ${what}`);
      await delay(50);
    }
  }

  #claim(name: string) {
    const claim = this.objects.all('resourceclaims').find(({ metadata }) => metadata['name'] === name);
    if (claim === undefined) throw new Error(`there is no claim ${name}`);
    return claim;
  }

  #refOf(name: string): ClaimRef {
    return { namespace: this.#namespace, name, uid: text(this.#claim(name).metadata['uid']) };
  }

  /** The published GPUs in their order. */
  #offered(): readonly OfferedGpu[] {
    const results = this.objects
      .all('resourceclaims')
      .flatMap(({ status }) => list(record(record(record(status)['allocation'])['devices'])['results']).map(record));
    return this.objects
      .all('resourceslices')
      .flatMap(({ spec }) => list(record(spec)['devices']).map(record))
      .filter(({ taints }) => list(taints).length === 0)
      .map((device): OfferedGpu => {
        const taken = results.filter((result) => result['device'] === device['name']);
        const free = (key: string): number =>
          amountOf(record(record(device['capacity'])[key])['value']) -
          taken.reduce((sum, result) => sum + amountOf(record(result['consumedCapacity'])[key]), 0);
        return {
          device: text(device['name']),
          uuid: text(record(record(device['attributes'])['uuid'])['string']),
          freeCores: free('cores'),
          freeBytes: free('memory'),
        };
      });
  }

  /** The container that a runtime creates from the CDI specification of a device. */
  async #containerOf(cdiDevices: readonly string[], device: string): Promise<StartedPod> {
    const unit = /=slice-([0-9a-f]{16})-/.exec(cdiDevices[0] ?? '')?.[1] ?? '';
    const path = join(this.node.config.cdiPath, `tencent.com-vcuda_${unit}.json`);
    const edits = record(record(JSON.parse(await readFile(path, 'utf8')))['containerEdits']);
    const mounts = list(edits['mounts'])
      .map(record)
      .map(({ hostPath, containerPath }) => ({
        hostPath: text(hostPath),
        containerPath: text(containerPath),
        readOnly: true,
      }));
    const uuid = this.#offered().find((gpu) => gpu.device === device)?.uuid ?? '';
    return {
      ok: true,
      slice: mounts.find(({ containerPath }) => containerPath === '/etc/vcuda')?.hostPath ?? '',
      container: {
        name: 'main',
        coreIds: [],
        memoryIds: [],
        // The specification has device nodes and no such variable; programs of the simulation find their GPU by this
        // variable.
        environment: { NVIDIA_VISIBLE_DEVICES: uuid },
        mounts,
        deviceNodes: [],
        annotations: {},
        cdiDevices,
      },
    };
  }
}

function requestOf(claim: { readonly [key: string]: unknown }): { readonly cores: number; readonly bytes: number } {
  const [request] = list(record(record(claim['spec'])['devices'])['requests']);
  const amounts = record(record(record(record(request)['exactly'])['capacity'])['requests']);
  return { cores: amountOf(amounts['cores']), bytes: amountOf(amounts['memory']) };
}

function amountOf(quantity: unknown): number {
  return (typeof quantity === 'string' ? wholeQuantity(quantity) : null) ?? 0;
}
