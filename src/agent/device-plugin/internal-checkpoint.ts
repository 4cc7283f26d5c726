import { DEVICE_KEY } from '../../gpu/annotations.js';
import { devicePluginProto } from '../../rpc/proto.js';
import { readStateFile } from '../../host/state-file.js';

/** One resource of one container in the kubelet's own record, `kubelet_internal_checkpoint`. */
export interface CheckpointEntry {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
  /** GPUs of the plugin's answer to Allocate: UUIDs, or `/dev/nvidia<minor>` where there is no UUID. */
  readonly gpuNames: readonly string[];
}

export type KubeletCheckpoint =
  | {
      readonly ok: true;
      readonly entries: readonly CheckpointEntry[];
      /** Resources of NVIDIA's device plugin that have devices on this node. */
      readonly ofNvidia: readonly string[];
    }
  | { readonly ok: false; readonly reason: string };

const VISIBLE_DEVICES = 'NVIDIA_VISIBLE_DEVICES';
/** Names that NVIDIA's device plugin gives whole and shared GPUs. Instances of MIG may be ours. */
const OF_NVIDIA = /^nvidia\.com\/gpu(\.shared)?$/;
const GPU_PATH = /^\/dev\/nvidia\d+$/;

export const KUBELET_CHECKPOINT_FILE = 'kubelet_internal_checkpoint';

/**
 * Reads the device manager's checkpoint in every format that kubelets have written: entries below `Data` (since 1.11)
 * with device ids as a list, or as a map from NUMA node to list (since 1.20), and the bare object of earlier versions.
 * Never throws.
 */
export function parseKubeletCheckpoint(text: string): KubeletCheckpoint {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `not JSON: ${(error as Error).message}` };
  }
  const data = isObject(document) && isObject(document.Data) ? document.Data : document;
  if (!isObject(data)) return { ok: false, reason: 'not a JSON object' };
  const list = data.PodDeviceEntries ?? [];
  if (!Array.isArray(list)) return { ok: false, reason: 'PodDeviceEntries is not a list' };
  const entries: CheckpointEntry[] = [];
  for (const entry of list as unknown[]) {
    const read = readEntry(entry);
    if (read === null) return { ok: false, reason: `malformed entry ${entries.length} of PodDeviceEntries` };
    entries.push(read);
  }
  const registered = isObject(data.RegisteredDevices) ? Object.entries(data.RegisteredDevices) : [];
  const ofNvidia = registered.flatMap(([name, ids]) =>
    OF_NVIDIA.test(name) && Array.isArray(ids) && ids.length > 0 ? name : [],
  );
  return { ok: true, entries, ofNvidia };
}

/**
 * Reads the checkpoint in the kubelet's device plugin directory; a missing file means that no device was ever
 * allocated.
 */
export async function readKubeletCheckpoint(path: string): Promise<KubeletCheckpoint> {
  try {
    return parseKubeletCheckpoint(await readStateFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { ok: true, entries: [], ofNvidia: [] };
    return { ok: false, reason: (error as Error).message };
  }
}

function readEntry(entry: unknown): CheckpointEntry | null {
  if (!isObject(entry)) return null;
  const { PodUID: podUid, ContainerName: container, ResourceName: resource, DeviceIDs: ids } = entry;
  if (typeof podUid !== 'string' || typeof container !== 'string' || typeof resource !== 'string') return null;
  const deviceIds: unknown[] = isObject(ids) ? Object.values(ids).flat() : Array.isArray(ids) ? ids : [];
  if (!deviceIds.every((id): id is string => typeof id === 'string')) return null;
  const response = typeof entry.AllocResp === 'string' ? Buffer.from(entry.AllocResp, 'base64') : Buffer.alloc(0);
  return { podUid, container, resource, deviceIds, gpuNames: gpuNamesIn(response) };
}

/** The GPUs in a plugin's answer that the kubelet recorded, a `ContainerAllocateResponse`. Empty for invalid bytes. */
function gpuNamesIn(response: Buffer): string[] {
  if (response.length === 0) return [];
  try {
    const { envs, annotations } = devicePluginProto().v1beta1.ContainerAllocateResponse.deserialize(response);
    const uuids = (envs[VISIBLE_DEVICES] ?? '').split(',').filter((uuid) => uuid !== '');
    return uuids.length > 0 ? uuids : (annotations[DEVICE_KEY] ?? '').split(',').filter((path) => GPU_PATH.test(path));
  } catch {
    return [];
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
