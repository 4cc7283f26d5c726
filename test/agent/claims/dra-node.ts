import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import type { Test } from 'tap';
import { deviceName } from '../../../src/gpu/claims/names.js';
import { kubeletPluginSockets } from '../../../src/agent/claims/kubelet-plugin.js';
import type { AgentConfig } from '../../../src/agent/config.js';
import type { AgentSeams } from '../../../src/agent/agent.js';
import { silentLog } from '../../../src/host/log.js';
import { draV1Proto } from '../../../src/rpc/proto.js';
import { callUnary } from '../../../src/rpc/unary.js';
import { ClaimManager, type DriverInfo } from '../../../src/simulation/kubelet/claim-manager.js';
import { DRA_TYPES } from '../../harness/api-server/dra-types.js';
import { eventually } from '../../harness/eventually.js';
import { scratchDirectory } from '../../scratch.js';
import { Cluster, NODE_NAME } from '../cluster.js';
import { cards } from '../gpus.js';

export const POOL = `${NODE_NAME}/vcuda`;

/** The i-th GPU of the simulated node, as published. */
export const DEVICE = (index: number): string => {
  const digit = index.toString(16);
  return deviceName(`GPU-${digit.padStart(8, '0')}-0000-0000-0000-${digit.padStart(12, '0')}`);
};

export interface ClaimOptions {
  readonly cores?: number;
  readonly memory?: string;
  /** A GPU by number, or a device by name. */
  readonly device?: number | string;
  readonly adminAccess?: boolean;
  readonly configs?: readonly object[];
  readonly pods?: readonly string[];
  /** Name of the claim in the manifest of its pod, for a claim from a template. */
  readonly nameInPod?: string;
  /** A part of another GPU in the same claim, by a request of its own. */
  readonly second?: { readonly cores: number; readonly memory: string; readonly device: number };
}

export type PrepareAnswer = Readonly<
  Record<
    string,
    {
      readonly error: string;
      readonly devices: readonly { readonly cdi_device_ids: readonly string[]; readonly share_id?: string }[];
    }
  >
>;

/** A node in mode `dra` with an API server; the test acts as the kubelet. */
export class DraNode {
  readonly cluster: Cluster;
  readonly directory: string;

  constructor(directory: string, gpus = 2, seams: AgentSeams = {}, config: Partial<AgentConfig> = {}) {
    this.directory = directory;
    this.cluster = new Cluster(directory, {
      gpus: cards(gpus),
      log: silentLog(),
      seams,
      config: {
        allocation: 'dra',
        pluginRegistryPath: join(directory, 'k/registry'),
        draPath: join(directory, 'k/dra'),
        ...config,
      },
    });
    this.cluster.server.define(...DRA_TYPES);
  }

  get node() {
    return this.cluster.node;
  }

  get agent() {
    return this.cluster.node.agent;
  }

  get sockets() {
    return kubeletPluginSockets(this.node.config.pluginRegistryPath, this.node.config.draPath);
  }

  /** Registers the driver as a kubelet does; returns the information of the driver. */
  register(): Promise<DriverInfo> {
    return new ClaimManager(this.node.config.pluginRegistryPath).register();
  }

  /** A claim of one request that the scheduler allocated; absent amounts mean the whole GPU. */
  allocate(
    name: string,
    {
      cores,
      memory = '4Gi',
      device = 0,
      adminAccess = false,
      configs = [],
      pods = [],
      nameInPod,
      second,
    }: ClaimOptions = {},
  ): void {
    const capacity =
      cores === undefined ? {} : { consumedCapacity: { cores: String(cores), memory }, shareID: `share-${name}` };
    this.cluster.server.seed('resourceclaims', {
      metadata: {
        name,
        namespace: 'team',
        uid: `uid-${name}`,
        ...(nameInPod === undefined ? {} : { annotations: { 'resource.kubernetes.io/pod-claim-name': nameInPod } }),
      },
      spec: {},
      status: {
        reservedFor: pods.map((uid) => ({ resource: 'pods', name: uid, uid })),
        allocation: {
          devices: {
            results: [
              {
                request: 'gpu',
                driver: 'gpu.tencent.com',
                pool: POOL,
                device: typeof device === 'number' ? DEVICE(device) : device,
                ...(adminAccess ? { adminAccess } : {}),
                ...capacity,
              },
              ...(second === undefined
                ? []
                : [
                    {
                      request: 'second',
                      driver: 'gpu.tencent.com',
                      pool: POOL,
                      device: DEVICE(second.device),
                      consumedCapacity: { cores: String(second.cores), memory: second.memory },
                      shareID: `share-${name}-second`,
                    },
                  ]),
            ],
            config: configs,
          },
        },
      },
    });
  }

  /** NodePrepareResources for claims of these names. */
  async prepare(...names: readonly string[]): Promise<PrepareAnswer> {
    const answer = await this.#call('NodePrepareResources', names);
    return answer as PrepareAnswer;
  }

  /** The kubelet's answer for one claim: its CDI devices, or the error. */
  async given(name: string): Promise<readonly string[] | string> {
    const answer = (await this.prepare(name))[`uid-${name}`];
    return answer?.error === ''
      ? answer.devices.flatMap(({ cdi_device_ids: ids }) => ids)
      : (answer?.error ?? 'no answer');
  }

  async unprepare(...names: readonly string[]): Promise<Readonly<Record<string, { readonly error: string }>>> {
    return (await this.#call('NodeUnprepareResources', names)) as Readonly<Record<string, { readonly error: string }>>;
  }

  /** Writes the record of prepared claims that the kubelet keeps. */
  async recordClaims(...names: readonly string[]): Promise<void> {
    const state = {
      kind: 'DRACheckpoint',
      ClaimInfoStateList: names.map((name) => ({
        ClaimUID: `uid-${name}`,
        ClaimName: name,
        Namespace: 'team',
        PodUIDs: {},
        DriverState: {
          'gpu.tencent.com': {
            Devices: [{ PoolName: POOL, DeviceName: DEVICE(0), RequestNames: ['gpu'], CDIDeviceIDs: [] }],
          },
        },
      })),
    };
    await writeFile(
      join(this.directory, 'k/dra_manager_state'),
      JSON.stringify({ Data: JSON.stringify(state), Checksum: 1 }),
    );
  }

  async loseCheckpoint(): Promise<void> {
    await rm(this.node.config.checkpointPath, { recursive: true, force: true });
  }

  /** Cores and memory blocks that the ledger holds of each GPU for claims. */
  booked(): string[] {
    return [...this.agent.allocator.state.units.values()]
      .flatMap(({ devices }) => devices.map(({ cores, memoryBlocks }) => `${cores}/${memoryBlocks}`))
      .sort();
  }

  async #call(method: 'NodePrepareResources' | 'NodeUnprepareResources', names: readonly string[]): Promise<unknown> {
    const { DRAPlugin } = draV1Proto().k8s.io.kubelet.pkg.apis.dra.v1;
    const client = new DRAPlugin(`unix:${this.sockets.driver}`, credentials.createInsecure());
    try {
      const claims = names.map((name) => ({ namespace: 'team', name, uid: `uid-${name}` }));
      return (await callUnary(client, method, { claims }, 30_000))?.claims;
    } finally {
      client.close();
    }
  }
}

export async function startedDraNode(
  t: Test,
  gpus?: number,
  seams?: AgentSeams,
  config?: Partial<AgentConfig>,
): Promise<DraNode> {
  const node = new DraNode(await scratchDirectory(t), gpus, seams, config);
  t.teardown(() => node.cluster.stop());
  await node.cluster.start();
  await eventually(() => node.cluster.server.all('resourceslices').length > 0, 'the GPUs to be published');
  return node;
}
