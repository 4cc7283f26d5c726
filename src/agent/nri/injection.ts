/**
 * Compares a container with the slice that it was given, and says what has to change so that the control library is in
 * it. Pure.
 *
 * The kubelet's answer and CDI bring the same mounts and variables. But the pod's own environment comes after them, and
 * a volume of the pod may lie over a mount: this is what is put right here. What is right already stays untouched, so
 * that plugins of others that change the same container do not collide with this one.
 *
 * A variable that is set twice stays as it is: the runtime's generator (containerd/nri v0.12, Generator.AdjustEnv)
 * changes its first occurrence, and the last one counts.
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
  /** What was wrong and is changed, for people; empty where nothing has to change. */
  readonly problems: readonly string[];
  /** What is wrong and cannot be changed. */
  readonly remaining: readonly string[];
}

const LIBRARY_PATH = 'LD_LIBRARY_PATH';
const PRELOAD = 'LD_PRELOAD';
/** The dynamic linker separates the entries of LD_PRELOAD by both. */
const PRELOAD_SEPARATORS = /[ :]+/;
/** Libraries of the driver that the control library takes the place of. */
const DRIVER_LIBRARY = /(^|\/)lib(cuda|nvidia-ml)\.so(\.|$)/;

export function injectionOf(
  container: Pick<RuntimeContainer, 'environment' | 'repeated' | 'mounts'>,
  given: GivenSlice,
  isSameSource: ContainerSlices['isSameSource'],
): Injection {
  const environment = new Map<string, string>();
  const problems: string[] = [];
  const remaining: string[] = [];
  const change = (name: string, value: string, problem: string): void => {
    if (container.repeated.has(name)) {
      remaining.push(
        `${problem}, and set twice, which no plugin can change (--interposition=cdi keeps it as it has to be)`,
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
    // Runtimes do not pass on that a variable is to be removed: an empty one is as good.
    change(PRELOAD, kept.join(':'), `${PRELOAD} is ${shown(preload)}`);
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

/** A search path that begins with `first`; what else it names stays behind it. */
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
    // Of several mounts on one place the last one is seen.
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

/** A path without doubled and trailing slashes. */
function clean(path: string): string {
  return path.replace(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

/** Text that the author of a pod chose. */
function shown(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(printable.length > 200 ? `${printable.slice(0, 200)}...` : printable);
}
