import type { BindMount } from '../../gpu/container-edits.js';
import type { RuntimeContainer } from './runtime-container.js';

/** What a container was given of the node's GPUs, as far as it can be put into a container of the runtime. */
export interface GivenSlice {
  /** Names its directory. */
  readonly slice: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  /** NUMA nodes of its GPUs; none where the platform does not say. */
  readonly numaNodes: readonly number[];
}

/** What the agent knows of containers; answers from memory. */
export interface ContainerSlices {
  /** By pod and name, as the ledger has it; null for a container that was given no GPU. */
  givenTo(podUid: string, container: string): GivenSlice | null;
  /** Whether the file that the runtime mounts is the one that was meant: links may have been followed. */
  isSameSource(meant: string, mounted: string): boolean;
}

/** Hears what becomes of containers that hold slices; must not block and must not throw. */
export interface ContainerEvents {
  /** Something that would have unhooked the control library was put right before the container was made. */
  corrected(container: RuntimeContainer, corrections: readonly string[]): void;
  /** Its processes have ended. */
  stopped(container: KnownContainer): void;
  /** It is gone, or its pod is. */
  removed(container: KnownContainer): void;
  /** The runtime has listed all its containers. */
  synchronized(containers: readonly KnownContainer[]): void;
}

/** A container of the runtime that holds a slice. */
export interface KnownContainer {
  readonly id: string;
  readonly podSandboxId: string;
  readonly podUid: string;
  readonly name: string;
  readonly slice: string;
  /** What unhooks the control library in it; empty where all is right. */
  readonly problems: readonly string[];
}
