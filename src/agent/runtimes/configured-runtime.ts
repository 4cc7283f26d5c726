import type { ContainerRuntime } from './container.js';
import { connectRuntime } from './endpoint.js';
import { NodeContainers } from './node-containers.js';

/** The flags of the agent that concern the container runtime. */
export interface RuntimeConfig {
  readonly containerRuntimeEndpoint: string | null;
  readonly dockerEndpoint: string | null;
  readonly runtimeRequestTimeoutMs: number;
}

/** Connects to the container runtime that the flags name, or else to the one that is found; rejects as that does. */
export function connectConfiguredRuntime(config: RuntimeConfig): Promise<ContainerRuntime> {
  return connectRuntime({
    timeoutMs: config.runtimeRequestTimeoutMs,
    criEndpoint: config.containerRuntimeEndpoint ?? undefined,
    dockerEndpoint: config.dockerEndpoint ?? undefined,
  });
}

/** The containers of this node, from the configured runtime or from the one that is found. */
export function nodeContainers(config: RuntimeConfig): NodeContainers {
  return new NodeContainers({ connect: () => connectConfiguredRuntime(config) });
}
