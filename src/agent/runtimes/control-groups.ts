import { readdirSync, readFileSync, statSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { isAbovePods, parseProcCgroup, podOfFolder } from './cgroup-path.js';
import { groupFolder } from './group-folder.js';
import { ownKubeletRoots } from './own-roots.js';

export interface ContainerGroup {
  readonly path: string;
  /** Null for a container that no kubelet started. */
  readonly podUid: string | null;
}

/** The control groups (version 2) of this machine. A group is named by the full path of its folder. */
export interface ControlGroups {
  /** Why there are none; null if there are. */
  readonly problem: string | null;
  /** The root of all groups. */
  readonly root: string;
  /** Whether the kernel's controller `dmem` has memory of NVIDIA GPUs. */
  hasGpuMemory(): boolean;
  /** The group of the container of a process, and its pod; null if it runs in none, or has ended. */
  ofProcess(pid: number): ContainerGroup | null;
  /** The group of the running container of that name in a pod, as the runtime knows it; null if it knows none. */
  ofContainer(podUid: string, container: string): Promise<string | null>;
  /** The group of a pod, which exists before its containers do; null if no kubelet has made one. */
  ofPod(podUid: string): string | null;
  /** The group that a runtime names as in the OCI specification (`linux.cgroupsPath`); null if there is none. */
  named(cgroupsPath: string): string | null;
  exists(group: string): boolean;
}

export interface ControlGroupsOptions {
  /** Host pid of the first process of a running container; null if it does not run, or the runtime does not answer. */
  readonly pidOf: (podUid: string, container: string) => Promise<number | null>;
  /** Mount point of the control groups. */
  readonly root?: string;
  /** The /proc that shows the processes of the whole machine. */
  readonly processes?: string;
}

/** Reads the file system of control groups. */
export function controlGroups(options: ControlGroupsOptions): ControlGroups {
  const { pidOf, root = '/sys/fs/cgroup', processes = '/proc' } = options;
  const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  const ofProcess = (pid: number): ContainerGroup | null => {
    const place = parseProcCgroup(textOf(join(processes, String(pid), 'cgroup')), ownKubeletRoots());
    if (place === null || place.controllers !== null) return null;
    const path = groupFolder(root, place.path);
    return path === null ? null : { path, podUid: place.podUid };
  };
  return {
    problem:
      statSync(join(root, 'cgroup.controllers'), { throwIfNoEntry: false }) === undefined
        ? `${root} has control groups of version 1, expected version 2`
        : null,
    root,
    hasGpuMemory: () => /^nvidia\//mu.test(textOf(join(root, 'dmem.capacity'))),
    ofProcess,
    async ofContainer(podUid, container) {
      const pid = await pidOf(podUid, container);
      const group = pid === null ? null : ofProcess(pid);
      return group?.podUid === podUid ? group.path : null;
    },
    ofPod: (podUid) =>
      [root, ...ownKubeletRoots().map((path) => join(root, path))]
        .map((from) => podFolder(from, podUid))
        .find((path) => path !== null) ?? null,
    named: (cgroupsPath) =>
      foldersOf(cgroupsPath)
        .map((path) => join(root, path))
        .find(exists) ?? null,
    exists,
  };
}

/** Searches only folders of kubelets: below its own group, a container can name groups as it likes. */
function podFolder(from: string, podUid: string): string | null {
  for (const { name } of foldersIn(from)) {
    const path = join(from, name);
    if (podOfFolder(name) === podUid) return path;
    const found = isAbovePods(name) ? podFolder(path, podUid) : null;
    if (found !== null) return found;
  }
  return null;
}

function foldersIn(path: string): readonly Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  } catch {
    return [];
  }
}

/** Empty if the file does not exist or cannot be read, as of a process that has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** `<slice>:<prefix>:<name>`, for a runtime that leaves control groups to systemd. */
const SYSTEMD = /^([^/:]+\.slice):([^/:]*):([^/:]+)$/u;

/**
 * The folders that a name may mean, below the root. A runtime that does not use systemd takes the form for systemd as a
 * plain folder.
 */
function foldersOf(cgroupsPath: string): readonly string[] {
  const parts = cgroupsPath.split('/').filter((part) => part !== '');
  if (parts.length === 0 || parts.includes('..')) return [];
  const [, slice = '', prefix = '', name = ''] = SYSTEMD.exec(cgroupsPath) ?? [];
  if (slice === '') return [cgroupsPath];
  const scope = prefix === '' ? name : `${prefix}-${name}`;
  return [`${sliceFolder(slice)}/${scope}.scope`, cgroupsPath];
}

/** systemd puts `a-b.slice` into `a.slice` (systemd.slice(5)). */
function sliceFolder(slice: string): string {
  const parts = slice.slice(0, -'.slice'.length).split('-');
  return parts.map((_, at) => `${parts.slice(0, at + 1).join('-')}.slice`).join('/');
}
