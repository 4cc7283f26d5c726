import { readFile } from 'node:fs/promises';
import type { Log } from '../host/log.js';
import { parseProcCgroup } from './runtimes/cgroup-path.js';
import { ownKubeletRoots } from './runtimes/own-roots.js';
import type { KnownContainer } from './nri/ports.js';
import { RuntimeError } from './runtimes/container.js';
import { NodeContainers } from './runtimes/node-containers.js';
import type { ContainerKnowledge } from './slices/ports.js';
import type { AgentConfig } from './config.js';
import { connectConfiguredRuntime } from './configured-runtime.js';

/** The containers of this node, from the configured runtime or from the one that is found. */
export function nodeContainers(config: AgentConfig): NodeContainers {
  return new NodeContainers({
    connect: () => connectConfiguredRuntime(config),
  });
}

/**
 * Answers the questions of the vGPU manager about containers, from control groups and the runtime. If the runtime does
 * not answer, the result is unknown, which is logged once per outage. `known` has the containers that the runtime
 * announced through NRI.
 */
export function containerKnowledge(
  containers: NodeContainers,
  known: (containerId: string) => KnownContainer | null,
  log: Log,
): ContainerKnowledge {
  let away = false;
  const ask = async <T>(question: () => Promise<T>): Promise<T | null> => {
    try {
      const answer = await question();
      away = false;
      return answer;
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      if (!away) log.warn({ err: error }, 'the container runtime does not answer; processes of containers are unknown');
      away = true;
      return null;
    }
  };
  return {
    async placeOf(pid) {
      // The process may end at any moment.
      const text = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
      return parseProcCgroup(text, ownKubeletRoots());
    },
    async pidsOf(containerId) {
      return (await ask(() => containers.pids(containerId))) ?? [];
    },
    sliceOf: (containerId) => known(containerId)?.slice ?? null,
    async nameOf(containerId) {
      const name = known(containerId)?.name;
      if (name !== undefined) return name;
      return (await ask(() => containers.inspect(containerId)))?.name ?? null;
    },
  };
}
