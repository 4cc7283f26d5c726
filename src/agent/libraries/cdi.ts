import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CONTAINER_SLICE_DIRECTORY,
  type ContainerEdits,
  type DeviceNode,
  type UnitEdits,
} from '../../gpu/container-edits.js';
import { removeHalfWritten, writeFileAtomically } from '../../host/atomic-file.js';
import { readStateFile } from '../../host/state-file.js';

const VENDOR = 'tencent.com';
const CLASS = 'vcuda';

/**
 * The directory for specifications that must survive a reboot: the kubelet restarts a container with the devices that
 * it recorded, before this agent runs.
 */
export const CDI_DIRECTORY = '/etc/cdi';

/**
 * From this minor version of Kubernetes 1 on, kubelets pass CDI devices of device plugins to the runtime by default.
 */
const FIRST_KUBELET_MINOR = 29;

const PREFIX = `${VENDOR}-${CLASS}_`;
const FILE_NAME = new RegExp(`^${VENDOR}-${CLASS}_([0-9a-zA-Z-]+)\\.json$`);

/**
 * Name of an allocation's device in requests to a runtime. Before version 0.5.0 a device's name had to start with a
 * letter.
 */
export function cdiDeviceName(allocationId: string): string {
  return `${VENDOR}/${CLASS}=${deviceName(allocationId)}`;
}

/** Whether a kubelet of this version (`v1.31.2`) passes CDI devices on by default. */
export function kubeletPassesCdiDevices(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= FIRST_KUBELET_MINOR);
}

/**
 * The specification of one allocation (https://github.com/cncf-tags/container-device-interface, SPEC.md), in the oldest
 * sufficient version: runtimes refuse a version that they do not know.
 */
export function cdiSpec(allocationId: string, edits: ContainerEdits): object {
  return {
    cdiVersion: oldestVersion(edits.deviceNodes),
    kind: `${VENDOR}/${CLASS}`,
    devices: [{ name: deviceName(allocationId), containerEdits: containerEdits(edits) }],
  };
}

/** The specification of one claim unit: a device for each of its GPUs, and shared edits at the level of the file. */
function cdiUnitSpec(unitId: string, { shared, devices }: UnitEdits): object {
  return {
    cdiVersion: oldestVersion([...shared.deviceNodes, ...devices.flat()]),
    kind: `${VENDOR}/${CLASS}`,
    containerEdits: containerEdits(shared),
    devices: devices.map((deviceNodes, at) => ({
      name: unitDeviceName(unitId, at),
      // A device without edits is invalid: if another device has its node already, it repeats a shared one.
      containerEdits:
        deviceNodes.length > 0
          ? { deviceNodes: deviceNodes.map(cdiNode) }
          : { env: [`NVIDIA_VISIBLE_DEVICES=${shared.environment.NVIDIA_VISIBLE_DEVICES ?? ''}`] },
    })),
  };
}

/** Name of the n-th device of a claim unit in requests to a runtime. */
function cdiUnitDeviceName(unitId: string, at: number): string {
  return `${VENDOR}/${CLASS}=${unitDeviceName(unitId, at)}`;
}

function oldestVersion(nodes: readonly DeviceNode[]): string {
  return nodes.some(({ hostPath, containerPath }) => hostPath !== containerPath) ? '0.5.0' : '0.3.0';
}

function containerEdits(edits: Pick<ContainerEdits, 'environment' | 'mounts' | 'deviceNodes'>): object {
  return {
    env: Object.entries(edits.environment).map(([name, value]) => `${name}=${value}`),
    deviceNodes: edits.deviceNodes.map(cdiNode),
    mounts: edits.mounts.map(({ hostPath, containerPath, writable }) => ({
      hostPath,
      containerPath,
      options: ['rbind', writable ? 'rw' : 'ro', 'nosuid', 'nodev'],
    })),
  };
}

function cdiNode({ hostPath, containerPath }: DeviceNode): object {
  return { path: containerPath, ...(hostPath === containerPath ? {} : { hostPath }), permissions: 'rw' };
}

/** The specifications of this node's allocations, one file each. */
export class CdiSpecs {
  readonly #directory: string;

  constructor(directory = CDI_DIRECTORY) {
    this.#directory = directory;
  }

  /** Removes incomplete specifications of an earlier run. The directory also has files of other programs. */
  async open(): Promise<void> {
    await removeHalfWritten(this.#directory, (name) => name.startsWith(PREFIX)).catch(() => undefined);
  }

  /** Writes the specification of an allocation; returns its device name. */
  async write(allocationId: string, edits: ContainerEdits): Promise<string> {
    await this.#writeFile(allocationId, cdiSpec(allocationId, edits), true);
    return cdiDeviceName(allocationId);
  }

  /** Writes the specification of a claim unit; returns the name of each of its devices. */
  async writeUnit(unitId: string, edits: UnitEdits): Promise<string[]> {
    // The file need not survive a reboot: the kubelet prepares every claim again before its pod starts.
    await this.#writeFile(unitId, cdiUnitSpec(unitId, edits), false);
    return edits.devices.map((_, at) => cdiUnitDeviceName(unitId, at));
  }

  /** The directory that the specification of a claim unit mounts as the slice; null if it does not tell. */
  async sliceDirectoryOf(unitId: string): Promise<string | null> {
    const text = await readStateFile(this.#path(unitId)).catch(() => '{}');
    try {
      const { containerEdits: edits } = JSON.parse(text) as {
        readonly containerEdits?: {
          readonly mounts?: readonly { readonly hostPath?: string; readonly containerPath?: string }[];
        };
      };
      return edits?.mounts?.find(({ containerPath }) => containerPath === CONTAINER_SLICE_DIRECTORY)?.hostPath ?? null;
    } catch {
      return null;
    }
  }

  async #writeFile(id: string, spec: object, durable: boolean): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o755 });
    await writeFileAtomically(this.#path(id), `${JSON.stringify(spec, null, 2)}\n`, { mode: 0o644, durable });
  }

  async remove(allocationId: string): Promise<void> {
    await rm(this.#path(allocationId), { force: true });
  }

  /** Allocations that have a specification. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.flatMap((name) => FILE_NAME.exec(name)?.[1] ?? []);
  }

  #path(allocationId: string): string {
    const name = `${VENDOR}-${CLASS}_${allocationId}.json`;
    if (!FILE_NAME.test(name)) throw new Error(`${JSON.stringify(allocationId)} cannot be part of a file name`);
    return join(this.#directory, name);
  }
}

const deviceName = (allocationId: string): string => `slice-${allocationId}`;
const unitDeviceName = (unitId: string, at: number): string => `slice-${unitId}-${at}`;
