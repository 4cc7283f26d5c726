import { readFile } from 'node:fs/promises';
import type { Clock } from '../../host/clock.js';
import type { PodEvidence, PodRemains } from './ports.js';
import { RuntimeError, type Container, type NodeContainers } from '../runtimes/index.js';

/** The kubelet waits for this answer: a runtime that hangs must not stop pod admission. */
const TIMEOUT_MS = 2_000;

/** Process of a pod's sandbox, which lives a while longer than the pod's containers. */
const SANDBOX_PROCESS = 'pause';

/**
 * The state of pods' containers from the container runtime; where the runtime knows none of a pod, from the pod's
 * processes in the control groups, because the runtime that answers may not be the kubelet's.
 */
export function podEvidence(
  containers: Pick<NodeContainers, 'list' | 'pidsByPod'>,
  clock: Pick<Clock, 'after'>,
): PodEvidence {
  /** By pod UID; null if the runtime does not answer. */
  const listed = async (): Promise<ReadonlyMap<string, readonly Container[]> | null> => {
    const all = await within(clock, TIMEOUT_MS, containers.list()).catch((error: unknown) => {
      if (error instanceof RuntimeError) return null;
      throw error;
    });
    if (all === null) return null;
    const byPod = new Map<string, Container[]>();
    for (const container of all)
      if (container.pod !== null) byPod.set(container.pod.uid, [...(byPod.get(container.pod.uid) ?? []), container]);
    return byPod;
  };
  return {
    async remainsOf(podUids) {
      if (podUids.size === 0) return new Map();
      const known = await listed();
      const isUnknown = [...podUids].some((podUid) => known?.has(podUid) !== true);
      const pids = isUnknown ? await containers.pidsByPod() : new Map<string, readonly number[]>();
      const remainsOf = async (podUid: string): Promise<PodRemains | null> => {
        const own = known?.get(podUid);
        if (own !== undefined) {
          const running = own.filter(({ state }) => state !== 'exited').map(({ name }) => name);
          return { running: new Set(running), any: true };
        }
        const names = await Promise.all((pids.get(podUid) ?? []).map(nameOf));
        if (names.length === 0) return known === null ? null : { running: new Set(), any: false };
        return { running: names.every((name) => name === SANDBOX_PROCESS) ? new Set() : null, any: true };
      };
      const remains = new Map<string, PodRemains | null>();
      for (const podUid of podUids) remains.set(podUid, await remainsOf(podUid));
      return remains;
    },
  };
}

/** The kernel's name of the process; empty for a process that has ended. */
async function nameOf(pid: number): Promise<string> {
  return (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
}

/** Null if the answer takes longer than `ms`. */
async function within<T>(clock: Pick<Clock, 'after'>, ms: number, answer: Promise<T>): Promise<T | null> {
  let cancel = (): void => undefined;
  const late = new Promise<null>((resolve) => (cancel = clock.after(ms, () => resolve(null))));
  try {
    return await Promise.race([answer, late]);
  } finally {
    cancel();
  }
}
