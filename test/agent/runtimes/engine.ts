import type { ContainerRuntime } from '../../../src/agent/runtimes/container.js';
import type { ImageFile } from './test-image.js';

/** What a test asks a container to be. */
export interface ContainerWish {
  readonly pod: { readonly uid: string; readonly namespace: string; readonly name: string };
  readonly name: string;
  /** How often it was started before; 0 unless given. Docker does not count. */
  readonly attempt?: number;
  /** One that the test has imported; the test image unless given. */
  readonly image?: string;
  /** The image's own where it is left out. */
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Set after these, also where that sets a variable twice, as a kubelet does with what a pod sets itself. */
  readonly laterEnvironment?: Readonly<Record<string, string>>;
  readonly mounts?: readonly {
    readonly hostPath: string;
    readonly containerPath: string;
    readonly writable: boolean;
  }[];
  readonly devices?: readonly { readonly hostPath: string; readonly containerPath: string }[];
  readonly user?: number;
  readonly readOnlyRoot?: boolean;
  /** The process ids and shared memory of the machine instead of the container's own. */
  readonly hostNamespaces?: boolean;
}

export interface ExecResult {
  readonly code: number;
  readonly output: string;
}

/** A real container engine that a test started for itself: what the kubelet does with it, done by hand. */
export interface Engine {
  readonly name: string;
  start(scratch: string, files?: readonly ImageFile[]): Promise<void>;
  /** Connects to it as the agent does. */
  connect(): Promise<ContainerRuntime>;
  /** Stops the daemon and starts it again; containers stay. */
  restart(): Promise<void>;
  /** Stops the daemon and leaves it so. */
  halt(): Promise<void>;
  /** Starts a container; answers its id. */
  run(wish: ContainerWish): Promise<string>;
  exec(containerId: string, command: readonly string[]): Promise<ExecResult>;
  /** Ends the container's processes; the container stays. */
  end(containerId: string): Promise<void>;
  /** Removes all containers and stops the daemon. */
  stop(): Promise<void>;
}
