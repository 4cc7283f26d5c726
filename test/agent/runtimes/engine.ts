import type { ContainerRuntime } from '../../../src/agent/runtimes/container.js';
import type { ImageFile } from './test-image.js';

/** The settings of a test container. */
export interface ContainerSpec {
  readonly pod: { readonly uid: string; readonly namespace: string; readonly name: string };
  readonly name: string;
  /** Number of earlier starts; by default 0. Docker does not count. */
  readonly attempt?: number;
  /** An image that the test has imported; by default the test image. */
  readonly image?: string;
  /** By default that of the image. */
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Set after these variables, even if a variable is then set twice, as a kubelet does with variables of the pod. */
  readonly laterEnvironment?: Readonly<Record<string, string>>;
  readonly mounts?: readonly {
    readonly hostPath: string;
    readonly containerPath: string;
    readonly writable: boolean;
  }[];
  readonly devices?: readonly { readonly hostPath: string; readonly containerPath: string }[];
  readonly user?: number;
  readonly readOnlyRoot?: boolean;
  /** The process ids and shared memory of the machine instead of those of the container. */
  readonly hostNamespaces?: boolean;
}

export interface ExecResult {
  readonly code: number;
  readonly output: string;
}

/** A real container engine of the test, which does for a container what the kubelet asks a runtime to do. */
export interface Engine {
  readonly name: string;
  start(scratch: string, files?: readonly ImageFile[]): Promise<void>;
  /** Connects to the engine as the agent does. */
  connect(): Promise<ContainerRuntime>;
  /** Restarts the daemon; containers stay. */
  restart(): Promise<void>;
  /** Stops the daemon. */
  halt(): Promise<void>;
  /** Starts a container; returns its id. */
  run(spec: ContainerSpec): Promise<string>;
  exec(containerId: string, command: readonly string[]): Promise<ExecResult>;
  /** Ends the processes of the container; the container stays. */
  end(containerId: string): Promise<void>;
  /** Removes all containers and stops the daemon. */
  stop(): Promise<void>;
}
