/**
 * Compares a container with its slice, and determines the changes that it needs to load the control library. Pure.
 *
 * The kubelet's answer and CDI add the same mounts and variables. However, the pod's own environment follows them, and
 * a volume of the pod may cover a mount: these cases are corrected here. Settings that are right stay untouched, so
 * that this plugin does not conflict with others that change the same container.
 *
 * A variable that is set twice stays as it is: the runtime's generator (containerd/nri v0.12, Generator.AdjustEnv)
 * changes its first occurrence, and the last one takes effect.
 */
import type { BindMount } from '../../gpu/container-edits.js';
import type { ContainerSlices, GivenSlice } from './ports.js';
import type { RuntimeContainer, RuntimeMount } from './runtime-container.js';

export interface MountChange {
  readonly destination: string;
  /** Null: the mount at the destination is removed. */
  readonly mount: BindMount | null;
}

export interface Injection {
  readonly environment: ReadonlyMap<string, string>;
  readonly mounts: readonly MountChange[];
  /** Problems that are corrected, in words; empty if nothing needs a change. */
  readonly problems: readonly string[];
  /** Problems that cannot be corrected. */
  readonly remaining: readonly string[];
}

const LIBRARY_PATH = 'LD_LIBRARY_PATH';
const PRELOAD = 'LD_PRELOAD';
/** The dynamic linker accepts both as separators in LD_PRELOAD. */
const PRELOAD_SEPARATORS = /[ :]+/;
/** By these the hook of NVIDIA's container toolkit (1.20.1) sets memory limits in the driver. */
const TOOLKIT_LIMITS = ['NVIDIA_GPU_MEMORY_REQUEST', 'NVIDIA_GPU_MEMORY_LIMIT'];
/** Libraries of the driver that the control library replaces. */
const DRIVER_LIBRARY = /(^|\/)lib(cuda|nvidia-ml)\.so(\.|$)/;

/** With `setsLimits` the agent sets memory limits in the driver, and no other program may. */
export function injectionOf(
  container: Pick<RuntimeContainer, 'environment' | 'repeated' | 'mounts'>,
  given: GivenSlice,
  isSameSource: ContainerSlices['isSameSource'],
  setsLimits = false,
): Injection {
  const environment = new Map<string, string>();
  const problems: string[] = [];
  const remaining: string[] = [];
  const change = (name: string, value: string, problem: string): void => {
    if (container.repeated.has(name)) {
      remaining.push(
        `${problem}, and set twice, which no plugin can change (use --interposition=cdi, which avoids this)`,
      );
      return;
    }
    environment.set(name, value);
    problems.push(problem);
  };
  for (const [name, value] of Object.entries(given.environment)) {
    const present = container.environment.get(name);
    const wanted = name === LIBRARY_PATH ? withFirst(value, present ?? '') : value;
    if (present === wanted) continue;
    change(name, wanted, present === undefined ? `${name} is not set` : `${name} is ${shown(present)}`);
  }
  const preload = container.environment.get(PRELOAD) ?? '';
  const entries = preload.split(PRELOAD_SEPARATORS).filter((entry) => entry !== '');
  const kept = entries.filter((entry) => !DRIVER_LIBRARY.test(entry));
  if (kept.length < entries.length) {
    // Runtimes do not support removing a variable: an empty value has the same effect.
    change(PRELOAD, kept.join(':'), `${PRELOAD} is ${shown(preload)}`);
  }
  for (const name of setsLimits ? TOOLKIT_LIMITS : []) {
    const present = container.environment.get(name) ?? '';
    if (present !== '') change(name, '', `${name} is ${shown(present)}, and the agent sets the memory limit`);
  }
  const mounts = mountChanges(container.mounts, given.mounts, isSameSource);
  return {
    environment,
    mounts,
    remaining,
    problems: [
      ...problems,
      ...mounts.map(({ destination, mount }) => {
        const present = container.mounts.find((entry) => clean(entry.destination) === destination);
        if (present === undefined) return `nothing is mounted on ${destination}`;
        return mount === null
          ? `${shown(present.source)} is mounted on ${destination}, inside of a mount of the slice`
          : `${shown(present.source)} is mounted on ${destination} instead of ${mount.hostPath}`;
      }),
    ],
  };
}

/** A search path that begins with `first`, followed by its other entries. */
function withFirst(first: string, present: string): string {
  const ours = first.split(':');
  const others = present.split(':').filter((directory) => directory !== '' && !ours.includes(clean(directory)));
  const wanted = [...ours, ...others].join(':');
  const normal = present.split(':').filter((directory) => directory !== '');
  return normal.join(':') === wanted ? present : wanted;
}

function mountChanges(
  present: readonly RuntimeMount[],
  meant: readonly BindMount[],
  isSameSource: ContainerSlices['isSameSource'],
): MountChange[] {
  const changes: MountChange[] = [];
  const destinations = new Set(meant.map(({ containerPath }) => clean(containerPath)));
  for (const mount of meant) {
    const destination = clean(mount.containerPath);
    // The last of several mounts on one path is visible.
    const there = present.filter((entry) => clean(entry.destination) === destination).at(-1);
    const right =
      there !== undefined &&
      isSameSource(mount.hostPath, there.source) &&
      (mount.writable || there.options.includes('ro'));
    if (!right) changes.push({ destination, mount });
  }
  for (const { destination: path } of present) {
    const destination = clean(path);
    if (destinations.has(destination)) continue;
    if ([...destinations].some((ours) => destination.startsWith(`${ours}/`)))
      changes.push({ destination, mount: null });
  }
  return changes;
}

/** The path without double and trailing slashes. */
function clean(path: string): string {
  return path.replace(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

/** Quotes text that the author of a pod chose. */
function shown(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(printable.length > 200 ? `${printable.slice(0, 200)}...` : printable);
}
