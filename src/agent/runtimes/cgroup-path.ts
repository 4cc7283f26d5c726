/** The position of a process in the tree of a container runtime, from its `/proc/<pid>/cgroup`. */
export interface CgroupPlace {
  /** 64 hexadecimal digits. */
  readonly containerId: string;
  /** UID of its pod; null for a container that no kubelet started. */
  readonly podUid: string | null;
  /** How directories are named: plain names of the runtime, or systemd slices and scopes. */
  readonly driver: 'cgroupfs' | 'systemd';
  /** The cgroup of the whole container, a path within its hierarchy; the process may be in a cgroup below it. */
  readonly path: string;
  /** Controllers of the hierarchy (version 1), or null for the unified one (version 2). */
  readonly controllers: readonly string[] | null;
}

/**
 * Docker, containerd and cri-o all name containers by 64 digits, optionally after the runtime's name and before
 * systemd's suffix.
 */
const CONTAINER = /^(?:(.+?)-)?([0-9a-f]{64})(\.scope)?$/;

/** `pod<uid>` under a kubelet with the cgroupfs driver. */
const POD_DIRECTORY = /^pod([0-9A-Za-z_-]+)$/;

/**
 * `[<root>-]kubepods[-<class>]-pod<uid>.slice` under a kubelet with the systemd driver, with `_` instead of `-` in the
 * UID.
 */
const POD_SLICE = /^(?:.+-)?kubepods(?:-(?:burstable|besteffort))?-pod([0-9A-Za-z_]+)\.slice$/;

/**
 * containerd with the cgroupfs driver under a kubelet with the systemd driver uses the slice's name as a part of the
 * cgroup's name: `<slice>:cri-containerd:<id>`.
 */
const MIXED = /^(.+\.slice):[^:]+:([0-9a-f]{64})$/;

/** Directories between a kubelet's root and its pods. */
const POD_PARENT = /^(?:(?:.+-)?kubepods(?:-(?:burstable|besteffort))?\.slice|kubepods|burstable|besteffort)$/;

/** The folder that the kubelet itself has with `--cgroup-root`, or that holds its own processes and its pods. */
const KUBELET = /^kubelet(?:\.slice)?$/;

/** UID of the pod whose group a folder of a kubelet is, by its name; null for another folder. */
export function podOfFolder(name: string): string | null {
  const slice = POD_SLICE.exec(name)?.[1]?.replaceAll('_', '-');
  return slice ?? POD_DIRECTORY.exec(name)?.[1] ?? null;
}

/** Whether a folder of this name lies between a root and the groups of pods. */
export function isAbovePods(name: string): boolean {
  return POD_PARENT.test(name) || KUBELET.test(name);
}

/**
 * Roots of the kubelet that runs the process whose `/proc/<pid>/cgroup` this is, one for each hierarchy in which it is
 * in a pod; needed if the cluster itself runs in a container. The process must be one that no other process can move:
 * the agent itself.
 */
export function kubeletRoots(ownText: string): readonly string[] {
  const roots = cgroupLines(ownText).flatMap(({ path }) => {
    const parts = path.split('/').slice(1);
    const pod = parts.flatMap((_, index) => podAt(parts, index) ?? []).at(-1);
    if (pod === undefined) return [];
    let end = pod.index;
    while (end > 0 && POD_PARENT.test(parts[end - 1] ?? '')) end -= 1;
    return end === 0 ? [] : [`/${parts.slice(0, end).join('/')}`];
  });
  return [...new Set(roots)].sort((a, b) => b.length - a.length);
}

/**
 * Finds the container of a process in the text of its `/proc/<pid>/cgroup` (cgroups(7):
 * `<hierarchy>:<controllers>:<path>`, where the path itself may have colons). Null if the process is in no container
 * that its cgroup identifies.
 *
 * The result is the container of the outermost pod below one of `roots`, however deep the process is: a process that
 * may create cgroups can create them only below its own, and with names like another pod's. For pods within pods (a
 * cluster in containers), the cgroup roots of the kubelets decide which pod it is.
 */
export function parseProcCgroup(text: string, roots: readonly string[] = []): CgroupPlace | null {
  const lines = cgroupLines(text);
  // On a machine with both versions the runtime uses one of them; of the first version, runtimes always set `memory`.
  const rank = (controllers: readonly string[] | null) =>
    controllers === null ? 2 : controllers.includes('memory') ? 0 : 1;
  for (const { controllers, path } of lines.sort((a, b) => rank(a.controllers) - rank(b.controllers))) {
    const root = roots.find((one) => path.startsWith(`${one}/`)) ?? '';
    const place = placeOf(path, root);
    if (place !== null) return { ...place, controllers };
  }
  return null;
}

/** One group of a process: its path within the hierarchy of these controllers; null: the unified hierarchy. */
export interface CgroupLine {
  readonly controllers: readonly string[] | null;
  readonly path: string;
}

/** The lines of `/proc/<pid>/cgroup`. */
export function cgroupLines(text: string): CgroupLine[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line);
    return match === null
      ? []
      : [{ controllers: match[1] === '' ? null : (match[1] ?? '').split(','), path: match[2] ?? '' }];
  });
}

function placeOf(path: string, root: string): Omit<CgroupPlace, 'controllers'> | null {
  const parts = path.split('/').slice(1);
  const above = root === '' ? 0 : root.split('/').length - 1;
  const pod = parts.flatMap((_, index) => (index < above ? [] : (podAt(parts, index) ?? []))).at(0);
  const start = pod === undefined ? above : pod.index + (pod.container === null ? 1 : 0);
  for (let index = start; index < parts.length; index += 1) {
    const part = parts[index] ?? '';
    const id = pod?.index === index ? pod.container : containerIn(part);
    if (id === null) continue;
    const driver = pod?.driver ?? (part.endsWith('.scope') ? 'systemd' : 'cgroupfs');
    return { containerId: id, podUid: pod?.uid ?? null, driver, path: `/${parts.slice(0, index + 1).join('/')}` };
  }
  return null;
}

interface Pod {
  readonly index: number;
  readonly uid: string;
  readonly driver: 'cgroupfs' | 'systemd';
  /** Set if pod and container share one directory. */
  readonly container: string | null;
}

function podAt(parts: readonly string[], index: number): Pod | null {
  const part = parts[index] ?? '';
  const mixed = MIXED.exec(part);
  const slice = POD_SLICE.exec(mixed?.[1] ?? part);
  if (slice !== null)
    return { index, uid: (slice[1] ?? '').replaceAll('_', '-'), driver: 'systemd', container: mixed?.[2] ?? null };
  const directory = POD_DIRECTORY.exec(part);
  if (directory === null || !parts.slice(0, index).includes('kubepods')) return null;
  return { index, uid: directory[1] ?? '', driver: 'cgroupfs', container: null };
}

function containerIn(part: string): string | null {
  const match = CONTAINER.exec(MIXED.exec(part)?.[2] ?? part);
  // cri-o's monitor of a container has a cgroup beside it with nearly the same name.
  if (match === null || match[1]?.endsWith('conmon') === true) return null;
  return match[2] ?? null;
}
