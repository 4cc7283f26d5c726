import { deviceNameOf, poolName } from '../../gpu/claims/names.js';
import {
  ALL_FEATURES,
  publishedCounterSets,
  publishedDevices,
  type KeptFeatures,
  type PublishedDevice,
  type PublishedGpu,
  type PublishedNode,
  type PublishedPool,
} from '../../gpu/claims/published-device.js';
import type { Gpu } from '../../gpu/gpu.js';
import { isOffered, configuredMode, type ClaimGpus } from '../../gpu/ledger/gpu-mode.js';
import type { Clock } from '../../host/clock.js';
import type { Part } from '../../host/lifecycle.js';
import { Listeners } from '../../host/listeners.js';
import type { Log } from '../../host/log.js';
import { pcieRoot } from '../../host/pcie-root.js';
import type { KubeClient } from '../../kube/client.js';
import { clusterSubject, type EventRecorder } from '../../kube/events.js';
import { type Allocator, ClaimAllocator } from '../allocator/index.js';
import type { ClaimNotices, NodeFiles } from '../allocator/ports.js';
import type { SliceStore, SliceSharing } from '../slices/ports.js';
import { unitsToAdopt, type ClaimEvidence } from './claim-adoption.js';
import { ClaimConsumers } from './claim-consumers.js';
import type { ClaimRecords } from './claim-records.js';
import { CdiGate } from './cdi-gate.js';
import { examineCdi } from './cdi-support.js';
import type { ClaimsConfig } from './claims-config.js';
import { claimSharing } from './claim-sharing.js';
import { ClaimSweep } from './claim-sweep.js';
import { ClaimAnnotations } from './claim-annotations.js';
import { ClaimPreparer, type Patience } from './claim-preparer.js';
import { ClaimReader } from './claim-reader.js';
import { ClaimStatus } from './claim-status.js';
import { draService } from './dra-service.js';
import { HealthService } from './health-service.js';
import { KUBELET_CLAIMS_FILE } from './kubelet-claims.js';
import { KubeletPlugin } from './kubelet-plugin.js';
import type { ClaimHandler, ClaimPods, ClaimRefusals, ClaimSource, DeviceHealth } from './ports.js';
import { SlicePublisher } from './slice-publisher.js';
import { type GpuDetails, type HealthMonitor, type MigPartitioner, modelName } from '../gpus/index.js';
import { MigInstances } from './mig-instances.js';
import { kubeletFile } from '../device-plugin/index.js';
import { GpuModeKeeper } from './gpu-mode-keeper.js';
import type { CdiSpecs } from '../libraries/index.js';
import { preparedStatus, type LiveLimits } from './prepared-status.js';

/** Label for node selectors: whether claims can get parts of this node's GPUs. */
const DRA_SHARES_LABEL = 'gaia.tencent.com/dra-shares';

/** Interval in which the ledger's claims are compared with the kubelet and the API server. */
const SWEEP_MS = 300_000;

export interface DraOptions {
  readonly config: ClaimsConfig;
  /** A separate client, which is closed when the driver stops. */
  readonly client: KubeClient;
  readonly allocator: Allocator;
  readonly slices: SliceStore;
  readonly specs: CdiSpecs;
  readonly records: ClaimRecords;
  /** The sources of the node about its claims at the start. */
  readonly evidence: ClaimEvidence;
  readonly files: NodeFiles;
  readonly isInUse: (slice: string) => boolean;
  /** Present limits of a slice on one GPU; null while it is not open. */
  readonly liveLimit: LiveLimits;
  readonly pods: ClaimPods;
  readonly notices: ClaimNotices & ClaimRefusals;
  /** Events of the node. */
  readonly events: EventRecorder;
  /** Wraps the handler of the kubelet's calls, to measure them. */
  readonly timed: (handler: ClaimHandler) => ClaimHandler;
  readonly health: HealthMonitor;
  readonly partitioner: MigPartitioner | null;
  readonly label: (labels: ReadonlyMap<string, string | null>) => void;
  /** Time limits of the preparation; absent: the defaults. */
  readonly patience?: Partial<Patience>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The parts of the DRA driver. */
export interface Dra {
  readonly claims: ClaimAllocator;
  readonly publisher: SlicePublisher;
  readonly plugin: KubeletPlugin;
  /** Containers and claims of the slices. */
  readonly sharing: SliceSharing;
  /** Must be started before the ledger is compared with the kubelet. */
  readonly restore: Part;
  /** The servers; to be started after the ledger was compared. */
  readonly serve: Part;
  /** Why the container runtime prevents the registration; null if it does not. */
  readonly runtimeProblem: () => string | null;
}

export function buildDra(options: DraOptions): Dra {
  const { config, client, allocator, health, clock, log } = options;
  const pool = poolName(config.nodeName);
  const reader = new ClaimReader(client);
  const annotations = new ClaimAnnotations({ client, clock, log });
  const roots = new PcieRoots();
  const instances = new MigInstances({ ...options, pool });
  const poolOf = (offered: (uuid: string) => boolean, features: KeptFeatures): PublishedPool => {
    const node = publishedNode(options, roots, instances);
    return {
      devices: publishedDevices(node, offered, features),
      counterSets: publishedCounterSets(node, features),
    };
  };
  const attributes = new DeviceAttributes(() => poolOf(() => true, ALL_FEATURES).devices);
  const claims = new ClaimAllocator({
    ...options,
    ledger: allocator.ledger,
    attributesOf: (device) => attributes.of(device),
  });
  const listeners = new Listeners();
  const isDivided = (uuid: string): boolean =>
    (health.inventory.partitionable ?? []).some(({ gpu }) => gpu.uuid === uuid);
  const offered = (uuid: string): boolean => isOffered(allocator.state, uuid, 'claims') || isDivided(uuid);
  const publisher = new SlicePublisher({
    client,
    nodeName: config.nodeName,
    content: (features) => poolOf(offered, features),
    onRefused: (reason) =>
      options.events.record(clusterSubject('Node', config.nodeName), {
        type: 'Warning',
        reason: 'ResourceSlicesRefused',
        message: `the ResourceSlices of this node are refused, so claims get none of its GPUs: ${reason}`,
      }),
    onFeatures: ({ shares }) => options.label(new Map([[DRA_SHARES_LABEL, String(shares)]])),
    clock,
    log,
  });
  const healthService = new HealthService(
    {
      health: () => healthOf(allocator, health, pool),
      onChange: (listener) => listeners.add(listener),
    },
    clock,
  );
  const { pods, notices } = options;
  const source: ClaimSource = {
    async read(claim, timeoutMs) {
      const read = await reader.read(claim, timeoutMs);
      if (read.kind === 'found') annotations.learn(read.claim);
      return read;
    },
  };
  const preparer = new ClaimPreparer({
    ...options,
    allocator: claims,
    instances,
    claims: source,
    pods,
    notices,
    pool,
    clock,
    log,
  });
  const plugin = new KubeletPlugin({
    registryPath: config.pluginRegistryPath,
    driverPath: config.draPath,
    services: [draService(options.timed(preparer), log), ...healthService.services],
    clock,
    log,
  });
  const gate = new CdiGate({ examine: () => examineCdi(config), register: () => plugin.register(), clock, log });
  const status = new ClaimStatus({
    api: client,
    prepared: () => preparedStatus(claims, options.liveLimit),
    clock,
    log,
  });
  const kubeletClaims = kubeletFile(config.pluginRegistryPath, config.hostRoot, KUBELET_CLAIMS_FILE);
  const modes = new GpuModeKeeper(allocator, reader, pool, clock, log, () => publisher.publish());
  const consumers = new ClaimConsumers(claims, pods, log);
  const sweep = new ClaimSweep(claims, reader, preparer, pods, kubeletClaims, pool, clock);
  const cancels: (() => void)[] = [];
  const failed = (error: unknown): void =>
    log.error({ err: error }, 'reconciling claims with the kubelet failed; retrying');

  return {
    claims,
    publisher,
    plugin,
    sharing: claimSharing(claims, annotations),
    runtimeProblem: () => gate.problem,
    restore: {
      name: 'claims',
      async start() {
        const { gpus, partitionable = [] } = health.inventory;
        await roots.read([...gpus, ...partitionable.map(({ gpu }) => gpu)].map(({ pciBusId }) => pciBusId));
        const { evidence, specs } = options;
        const { state } = allocator;
        const { virtualManagerPath } = config;
        const uids = new Set(evidence.kubelet.map(({ claim }) => claim.uid));
        const adopted = await unitsToAdopt({
          evidence,
          state,
          claims: reader,
          pods,
          specs,
          virtualManagerPath,
          pool,
          clock,
        });
        await claims.restore(({ claim }) => uids.has(claim.uid), adopted);
        await instances.restore();
      },
      stop: async () => client.close(),
    },
    serve: {
      name: 'dra',
      async start() {
        await modes.turn();
        await plugin.serve();
        healthService.start();
        publisher.start();
        const follow = (): void => annotations.follow([...allocator.state.units.values()].map(({ claim }) => claim));
        follow();
        cancels.push(
          claims.onChanged(follow),
          allocator.onDevicesChanged(() => {
            attributes.forget();
            publisher.publish();
            listeners.emit();
          }),
          claims.onReleased(() => void modes.turn().catch(failed)),
          clock.every(config.allocationCheckPeriodMs, () => {
            modes.turn().catch(failed);
            claims
              .freeOver(() => false)
              .then(() => instances.destroyUnused())
              .catch(failed);
            sweep.confirm().catch(failed);
            if (sweep.isSuspicious) sweep.turn().catch(failed);
          }),
          clock.every(SWEEP_MS, () => void sweep.turn().catch(failed)),
        );
        consumers.start();
        status.start();
        await gate.open();
        // The checkpoint may be older than the last releases.
        sweep.turn().catch(failed);
      },
      async stop() {
        for (const cancel of cancels) cancel();
        consumers.stop();
        await plugin.stop();
        healthService.stop();
        await publisher.stop();
        await annotations.stop();
        await status.stop();
        await sweep.settle();
        await allocator.settle();
      },
    },
  };
}

/** PCIe roots of the GPUs from sysfs; read once, because a GPU does not move. */
class PcieRoots {
  readonly #roots = new Map<string, string | null>();

  async read(busIds: readonly string[]): Promise<void> {
    for (const busId of busIds) this.#roots.set(busId, await pcieRoot(busId));
  }

  of(busId: string): string | null {
    return this.#roots.get(busId) ?? null;
  }
}

/** Attributes of the node's devices by name, which are searched for anew only after a change of the GPUs. */
class DeviceAttributes {
  readonly #devices: () => readonly PublishedDevice[];
  #byName: ReadonlyMap<string, PublishedDevice['attributes']> | null = null;

  constructor(devices: () => readonly PublishedDevice[]) {
    this.#devices = devices;
  }

  of(device: string): PublishedDevice['attributes'] {
    this.#byName ??= new Map(this.#devices().map(({ name, attributes }) => [name, attributes]));
    return this.#byName.get(device) ?? {};
  }

  forget(): void {
    this.#byName = null;
  }
}

function publishedNode(
  { allocator, health, config }: DraOptions,
  roots: PcieRoots,
  instances: MigInstances,
): PublishedNode {
  const { inventory } = health;
  const { node } = allocator.state;
  const details = new Map(inventory.gpus.map((gpu) => [gpu.uuid, gpu]));
  const unusable = health.unusable();
  const published = (gpu: Gpu, known: GpuDetails | undefined): PublishedGpu => {
    const status = known === undefined || health.outage !== null ? 'lost' : health.health(gpu.uuid).status;
    const evict = config.draEvictFailed && health.outage === null && (status === 'failed' || status === 'lost');
    return {
      ...gpu,
      modelName: modelName(gpu.model),
      computeCapability: known?.computeCapability ?? null,
      pcieRoot: roots.of(gpu.pciBusId),
      illness: unusable.has(gpu.uuid) ? { status, evict } : null,
    };
  };
  return {
    gpus: node.gpus.map(({ gpu }) => published(gpu, details.get(gpu.uuid))),
    topology: node.topology,
    wholeInstances: node.wholeInstances,
    divided: (inventory.partitionable ?? []).map((one) => ({
      ...one,
      gpu: published(one.gpu, one.gpu),
      foreign: one.found.filter((found) => !instances.isOwn(one.gpu.uuid, found)),
    })),
    driverVersion: inventory.driverVersion,
    cudaVersion: inventory.cudaVersion,
  };
}

function healthOf(allocator: Allocator, health: HealthMonitor, pool: string): DeviceHealth[] {
  const unusable = health.unusable();
  return allocator.state.node.gpus
    .filter(({ gpu }) => configuredMode(allocator.state.claimGpus, gpu.uuid) === 'claims')
    .map(({ gpu }) => ({
      pool,
      device: deviceNameOf(gpu),
      healthy: !unusable.has(gpu.uuid),
      message: unusable.get(gpu.uuid) ?? '',
    }));
}

/** Reasons why the DRA driver cannot be used yet, for readiness. */
export function draProblems(dra: Dra | null, claimGpus: ClaimGpus): string[] {
  if (dra === null || claimGpus === 'none' || dra.plugin.registered) return [];
  return [dra.runtimeProblem() ?? 'not registered with the kubelet as a DRA driver'];
}
