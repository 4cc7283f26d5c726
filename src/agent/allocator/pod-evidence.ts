import { readFile } from 'node:fs/promises';
import type { Clock } from '../../host/clock.js';
import type { PodEvidence } from './ports.js';
import { RuntimeError, type NodeContainers } from '../runtimes/index.js';

/** The kubelet waits for this answer: a runtime that hangs must not stop pod admission. */
const TIMEOUT_MS = 2_000;

/** Process of a pod's sandbox, which lives a while longer than the pod's containers. */
const SANDBOX_PROCESS = 'pause';

/**
 * The state of a pod's containers from the container runtime; if the runtime knows none, from the pod's processes in
 * the control groups, because the runtime that answers may not be the kubelet's.
 */
export function podEvidence(
  containers: Pick<NodeContainers, 'list' | 'pidsOfPod'>,
  clock: Pick<Clock, 'after'>,
): PodEvidence {
  return {
    async remainsOf(podUid) {
      const listed = await within(clock, TIMEOUT_MS, containers.list({ podUid })).catch((error: unknown) => {
        if (error instanceof RuntimeError) return null;
        throw error;
      });
      if (listed !== null && listed.length > 0) {
        const running = listed.filter(({ state }) => state !== 'exited').map(({ name }) => name);
        return { running: new Set(running), any: true };
      }
      const pids = await containers.pidsOfPod(podUid);
      if (pids.length === 0) return listed === null ? null : { running: new Set(), any: false };
      const names = await Promise.all(pids.map(nameOf));
      return { running: names.every((name) => name === SANDBOX_PROCESS) ? new Set() : null, any: true };
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
