import { readFile } from 'node:fs/promises';
import type { Log } from '../../host/log.js';
import type { AnnouncedContainers } from './announced-containers.js';
import { parseProcCgroup } from './cgroup-path.js';
import { ownKubeletRoots } from './own-roots.js';
import { RuntimeError } from './container.js';
import type { NodeContainers } from './node-containers.js';

/** The pod and container in which a process of the host runs. */
export interface ProcessPlace {
  readonly containerId: string;
  /** Null for a container that no kubelet started. */
  readonly podUid: string | null;
}

/**
 * Processes and containers according to control groups and the container runtime. Calls may be slow and may have no
 * answer.
 */
export interface ContainerKnowledge {
  /** The container of a process; null if it runs in none, has ended, or is unknown. */
  placeOf(pid: number): Promise<ProcessPlace | null>;
  /** Host pids of all processes of a container; empty if it does not run or is unknown. */
  pidsOf(containerId: string): Promise<readonly number[]>;
  /** The slice with which a container was created; null if unknown. */
  sliceOf(containerId: string): string | null;
  /** A container's name in its pod; null if unknown. */
  nameOf(containerId: string): Promise<string | null>;
}

/**
 * Answers the questions of the vGPU manager about containers, from control groups and the runtime. If the runtime does
 * not answer, the result is unknown, which is logged once per outage.
 */
export function containerKnowledge(
  containers: NodeContainers,
  announced: AnnouncedContainers,
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
    sliceOf: (containerId) => announced.get(containerId)?.slice ?? null,
    async nameOf(containerId) {
      const name = announced.get(containerId)?.name;
      if (name !== undefined) return name;
      return (await ask(() => containers.inspect(containerId)))?.name ?? null;
    },
  };
}
