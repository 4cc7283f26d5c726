import { ACTIVITY_FILE } from '../../abi/vgpu-abi.js';
import { injectionOf } from './injection.js';
import type { ContainerSlices, KnownContainer } from './ports.js';
import type { RuntimeContainer } from './runtime-container.js';
import { CONTAINER_SLICE_DIRECTORY, type BindMount } from '../../gpu/container-edits.js';

/** Limit of tracked containers with slices; a kubelet runs a few hundred at most. */
const MAX_CONTAINERS = 4_096;

/**
 * The runtime's containers that have slices, by id. Listed containers are compared with the ledger at each query,
 * because the ledger may learn of a container later than the runtime lists it.
 */
export class KnownContainers {
  readonly #slices: ContainerSlices;
  readonly #known = new Map<string, KnownContainer>();
  /** Listed by the runtime with a slice directory, but not in the ledger yet. */
  readonly #unclaimed = new Map<string, RuntimeContainer>();

  constructor(slices: ContainerSlices) {
    this.#slices = slices;
  }

  get(id: string): KnownContainer | null {
    return this.#known.get(id) ?? this.#claim(id);
  }

  all(): readonly KnownContainer[] {
    for (const id of this.#unclaimed.keys()) this.#claim(id);
    return [...this.#known.values()];
  }

  /** A container is being created; `problems` lists the problems that could not be corrected. */
  created(container: RuntimeContainer, slice: string, problems: readonly string[]): void {
    // Not every runtime reports the removal of an earlier container whose creation failed.
    for (const [id, known] of this.#known)
      if (known.podUid === container.podUid && known.name === container.name) this.#known.delete(id);
    this.#set({ ...identityOf(container), slice, problems });
  }

  /**
   * The runtime listed an existing container; null if it has no slice. Earlier knowledge of it is dropped: the runtime
   * may not have waited for the plugin when it created the container.
   */
  found(container: RuntimeContainer): KnownContainer | null {
    this.#known.delete(container.id);
    if (this.#unclaimed.size < MAX_CONTAINERS) this.#unclaimed.set(container.id, container);
    const claimed = this.#claim(container.id);
    if (claimed === null && !container.mounts.some(({ destination }) => destination === CONTAINER_SLICE_DIRECTORY))
      this.#unclaimed.delete(container.id);
    return claimed;
  }

  /** Forgets a container; returns its known data. */
  remove(id: string): KnownContainer | null {
    const known = this.#known.get(id) ?? null;
    this.#known.delete(id);
    this.#unclaimed.delete(id);
    return known;
  }

  /** Forgets the containers of a sandbox; returns them. */
  removeSandbox(podSandboxId: string): KnownContainer[] {
    for (const [id, container] of this.#unclaimed)
      if (container.podSandboxId === podSandboxId) this.#unclaimed.delete(id);
    return [...this.#known.values()].filter((known) => {
      if (known.podSandboxId !== podSandboxId) return false;
      return this.#known.delete(known.id);
    });
  }

  /** Forgets every container that the runtime did not list; returns those with slices. */
  keepOnly(ids: ReadonlySet<string>): KnownContainer[] {
    for (const id of this.#unclaimed.keys()) if (!ids.has(id)) this.#unclaimed.delete(id);
    return [...this.#known.values()].filter(({ id }) => !ids.has(id) && this.#known.delete(id));
  }

  #claim(id: string): KnownContainer | null {
    const container = this.#unclaimed.get(id);
    if (container === undefined) return null;
    const given = this.#slices.givenTo(container.podUid, container.name);
    if (given === null) return null;
    this.#unclaimed.delete(id);
    const { problems, remaining } = injectionOf(
      container,
      { ...given, mounts: given.mounts.filter((mount) => !isNewerThan(container, mount)) },
      (meant, mounted) => this.#slices.isSameSource(meant, mounted),
    );
    const all = container.mayRun ? [...remaining, ...problems] : [];
    return this.#set({ ...identityOf(container), slice: given.slice, problems: all });
  }

  #set(known: KnownContainer): KnownContainer {
    if (this.#known.size >= MAX_CONTAINERS) {
      const [oldest] = this.#known.keys();
      if (oldest !== undefined) this.#known.delete(oldest);
    }
    this.#known.set(known.id, known);
    return known;
  }
}

/** Containers of earlier releases lack the activity file: they run as before, and claim nothing. */
function isNewerThan({ mounts }: RuntimeContainer, { containerPath }: BindMount): boolean {
  return (
    containerPath === `${CONTAINER_SLICE_DIRECTORY}/${ACTIVITY_FILE}` &&
    !mounts.some(({ destination }) => destination === containerPath)
  );
}

function identityOf(container: RuntimeContainer): Omit<KnownContainer, 'slice' | 'problems'> {
  const { id, podSandboxId, podUid, name, cgroupsPath } = container;
  return { id, podSandboxId, podUid, name, cgroupsPath };
}
