import type { AgentConfig } from './config.js';
import type { ContainerRuntime } from './runtimes/container.js';
import { connectRuntime } from './runtimes/endpoint.js';

/** The flags of the agent that concern the container runtime. */
export type RuntimeConfig = Pick<
  AgentConfig,
  'runtimeRequestTimeoutMs' | 'containerRuntimeEndpoint' | 'dockerEndpoint'
>;

/** Connects to the container runtime that the flags name, or else to the one that is found; rejects as that does. */
export function connectConfiguredRuntime(config: RuntimeConfig): Promise<ContainerRuntime> {
  return connectRuntime({
    timeoutMs: config.runtimeRequestTimeoutMs,
    ...(config.containerRuntimeEndpoint === null ? {} : { criEndpoint: config.containerRuntimeEndpoint }),
    ...(config.dockerEndpoint === null ? {} : { dockerEndpoint: config.dockerEndpoint }),
  });
}
