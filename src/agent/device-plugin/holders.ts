import { join } from 'node:path';
import { coreIdsOfWhole } from '../../gpu/device-id.js';
import type { Holder } from '../../gpu/ledger/identify.js';
import { isMigResource } from '../../gpu/mig.js';
import { CORE_RESOURCE, MEMORY_RESOURCE, type ResourceKind } from '../../gpu/resources.js';
import type { Log } from '../../host/log.js';
import { KUBELET_CHECKPOINT_FILE, readKubeletCheckpoint, type CheckpointEntry } from './internal-checkpoint.js';
import { PodResourcesClient, type ContainerDevices } from './pod-resources.js';
import type { CallPatience } from '../../rpc/unary.js';

/** What to do where NVIDIA's device plugin runs on the node too. */
export const ONE_PLUGIN =
  'a GPU may be given to two pods: set the node label nvidia.com/gpu.deploy.device-plugin=false, or remove nvidia-device-enable (docs/guides/gpu-operator.md)';

/** Names and UIDs of pods: pod-resources names pods, the kubelet's checkpoint has UIDs. */
export interface PodNames {
  uidOf(namespace: string, pod: string): string | null;
  nameOf(podUid: string): { readonly namespace: string; readonly pod: string } | null;
}

export interface HoldersOptions {
  readonly podResourcesSocket: string;
  readonly devicePluginDirectory: string;
  readonly pods: PodNames;
  readonly log: Log;
}

/**
 * Tells which container holds which device ids, according to the kubelet: from pod-resources, and for init containers
 * from its checkpoint.
 */
export class KubeletHolders {
  readonly #client: PodResourcesClient;
  readonly #checkpointPath: string;
  readonly #pods: PodNames;
  readonly #log: Log;
  #isShared = false;

  constructor(options: HoldersOptions) {
    this.#client = new PodResourcesClient(options.podResourcesSocket);
    this.#checkpointPath = join(options.devicePluginDirectory, KUBELET_CHECKPOINT_FILE);
    this.#pods = options.pods;
    this.#log = options.log;
  }

  /**
   * The container that holds exactly these ids of this kind; null if the kubelet names none or does not answer. An init
   * container and a later container may have the same cores: the kubelet does not tell which of them starts, so the
   * memory ids are those of both.
   */
  async holderOf(kind: ResourceKind, ids: readonly string[]): Promise<Holder | null> {
    const wanted = keyOf(ids);
    const matching = (await this.known()).filter(
      (holder) => keyOf(kind === 'core' ? holder.coreIds : holder.memoryIds) === wanted,
    );
    const [first] = matching;
    if (first === undefined) return null;
    const samePod = matching.filter(
      (holder) => holder.container.podUid === first.container.podUid && keyOf(holder.coreIds) === keyOf(first.coreIds),
    );
    return samePod.length === 1
      ? first
      : { ...first, memoryIds: [...new Set(samePod.flatMap((holder) => holder.memoryIds))] };
  }

  /** The containers with our ids that the kubelet names now, from the sources that answer. */
  async known(): Promise<Holder[]> {
    return (await this.#ask()).holders;
  }

  /**
   * Every container with our ids; null unless both sources answered, because a missing container may only be unknown.
   * If the kubelet restarts meanwhile, this waits for it, as long as a call may take.
   */
  async all(): Promise<Holder[] | null> {
    const { holders, complete } = await this.#ask({ waitForReady: true });
    return complete ? holders : null;
  }

  async #ask(patience?: CallPatience): Promise<{ holders: Holder[]; complete: boolean }> {
    const [listed, entries] = await Promise.all([this.#listed(patience), this.#entries()]);
    const fromCheckpoint = this.#fromEntries(entries ?? []);
    // The first of several entries with the same name and cores is used.
    const recorded = new Map(
      fromCheckpoint
        .map((holder) => [recordKey(holder.container.container, holder.coreIds), holder] as const)
        .reverse(),
    );
    const fromList = (listed ?? []).map((container) => this.#fromListed(container, recorded));
    const seen = new Set(fromList.map((holder) => `${holder.container.podUid}/${holder.container.container}`));
    const others = fromCheckpoint.filter(
      (holder) => !seen.has(`${holder.container.podUid}/${holder.container.container}`),
    );
    const holders = [...fromList, ...others].filter(
      (holder) => holder.coreIds.length > 0 || holder.memoryIds.length > 0,
    );
    return { holders, complete: listed !== null && entries !== null };
  }

  close(): void {
    this.#client.close();
  }

  async #listed(patience?: CallPatience): Promise<ContainerDevices[] | null> {
    try {
      return await this.#client.list(patience);
    } catch (error) {
      this.#log.warn({ reason: (error as Error).message }, 'the pod-resources service of the kubelet does not answer');
      return null;
    }
  }

  async #entries(): Promise<readonly CheckpointEntry[] | null> {
    const checkpoint = await readKubeletCheckpoint(this.#checkpointPath);
    if (!checkpoint.ok) {
      this.#log.warn({ reason: checkpoint.reason }, "the kubelet's checkpoint cannot be read");
      return null;
    }
    const { entries, ofNvidia } = checkpoint;
    if (ofNvidia.length > 0 && !this.#isShared)
      this.#log.warn({ resources: ofNvidia }, `NVIDIA's device plugin offers GPUs on this node too; ${ONE_PLUGIN}`);
    this.#isShared = ofNvidia.length > 0;
    return entries;
  }

  #fromListed(container: ContainerDevices, fromCheckpoint: ReadonlyMap<string, Holder>): Holder {
    const coreIds = [...container.devices].flatMap(([resource, ids]) => coreIdsIn(resource, ids));
    const memoryIds = container.devices.get(MEMORY_RESOURCE) ?? [];
    const recorded = fromCheckpoint.get(recordKey(container.container, coreIds));
    // A pod that was created again under its old name has a new UID, and the API server's answer may be older than it.
    const podUid = recorded?.container.podUid ?? this.#pods.uidOf(container.namespace, container.pod) ?? '';
    return {
      container: { podUid, namespace: container.namespace, pod: container.pod, container: container.container },
      coreIds,
      memoryIds,
      gpuNames: recorded?.gpuNames ?? [],
      isListed: true,
    };
  }

  #fromEntries(entries: readonly CheckpointEntry[]): Holder[] {
    const holders = new Map<string, Holder>();
    for (const entry of entries) {
      const coreIds = coreIdsIn(entry.resource, entry.deviceIds);
      if (coreIds.length === 0 && entry.resource !== MEMORY_RESOURCE) continue;
      const key = `${entry.podUid}/${entry.container}`;
      const name = this.#pods.nameOf(entry.podUid);
      const known = holders.get(key) ?? {
        container: {
          podUid: entry.podUid,
          namespace: name?.namespace ?? '',
          pod: name?.pod ?? '',
          container: entry.container,
        },
        coreIds: [],
        memoryIds: [],
        gpuNames: [],
        isListed: false,
      };
      const mine =
        entry.resource === MEMORY_RESOURCE
          ? { memoryIds: entry.deviceIds }
          : { coreIds: [...known.coreIds, ...coreIds] };
      // The list and the checkpoint may each name the GPUs; if both do, they agree. If several instances match, the
      // message names them all.
      const gpuNames = [...new Set([...known.gpuNames, ...entry.gpuNames])];
      holders.set(key, { ...known, ...mine, gpuNames });
    }
    return [...holders.values()];
  }
}

/** The core ids of a resource: its ids, or the core ids of its whole MIG instances. */
function coreIdsIn(resource: string, ids: readonly string[]): readonly string[] {
  if (resource === CORE_RESOURCE) return ids;
  return isMigResource(resource) ? ids.flatMap(coreIdsOfWhole) : [];
}

function recordKey(container: string, coreIds: readonly string[]): string {
  return `${container}\n${keyOf(coreIds)}`;
}

function keyOf(ids: readonly string[]): string {
  return [...ids].sort().join('\n');
}
