import type { BindMount } from '../../gpu/container-edits.js';
import type { RuntimeContainer } from './runtime-container.js';

/** The slice of a container, in the form that is needed to correct the container. */
export interface GivenSlice {
  /** Name of the slice's directory. */
  readonly slice: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  /** NUMA nodes of its GPUs; empty if the platform does not report them. */
  readonly numaNodes: readonly number[];
}

/** The containers that the agent knows; answers from memory. */
export interface ContainerSlices {
  /** The slice of a container in the ledger, by pod and name; null for a container without a GPU. */
  givenTo(podUid: string, container: string): GivenSlice | null;
  /** Whether the file that the runtime mounts is the intended one: it may have resolved links. */
  isSameSource(meant: string, mounted: string): boolean;
}

/** Receives events of containers with slices; must not block and must not throw. */
export interface ContainerEvents {
  /** A setting that would have unhooked the control library was corrected before the container was created. */
  corrected(container: RuntimeContainer, corrections: readonly string[]): void;
  /** Its processes have ended. */
  stopped(container: KnownContainer): void;
  /** It was removed, or its pod was. */
  removed(container: KnownContainer): void;
  /** The runtime has listed all its containers. */
  synchronized(containers: readonly KnownContainer[]): void;
}

/** What has to happen between the creation of a container and the start of its program. */
export interface StartGate {
  /** Asked when the runtime connects: without need the runtime does not wait for the agent. */
  isNeeded(): boolean;
  /** The program starts when this resolves; must not reject, and must not take two seconds. */
  pass(slice: string): Promise<void>;
}

/** A container of the runtime that has a slice. */
export interface KnownContainer {
  readonly id: string;
  readonly podSandboxId: string;
  readonly podUid: string;
  readonly name: string;
  readonly slice: string;
  /** Name of its control group in the form of the OCI specification; empty if the runtime does not tell. */
  readonly cgroupsPath: string;
  /** Settings that unhook the control library in it; empty if there are none. */
  readonly problems: readonly string[];
}

/** The operator's journal of the node; must not block and must not throw. */
export interface NriJournal {
  note(event: { readonly level: 'info' | 'warning'; readonly kind: string; readonly message: string }): void;
}
