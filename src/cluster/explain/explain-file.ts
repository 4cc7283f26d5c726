import { systemClock } from '../../host/clock.js';
import { keptAlive } from '../../host/keep-alive.js';
import { StartupError } from '../../host/startup-error.js';
import { openKubeClient } from '../../kube/open-client.js';
import type { PolicyName } from '../placement/policy/policy.js';
import { readState, type ClusterState } from './cluster-state.js';
import { readObjects } from './object-file.js';
import { explainIn, type WaitingAnswer } from './why-waiting.js';

/**
 * Explains where the pod of a file fits: in the cluster of the API server, or in the one that `stateFile` describes.
 */
export async function explainFile(options: {
  readonly podFile: string;
  readonly stateFile: string | null;
  readonly kubeconfig: string | null;
  readonly policy: PolicyName;
}): Promise<{
  readonly answer: WaitingAnswer;
  /** Kind of the workload that creates such pods; null for a pod. */
  readonly workload: string | null;
}> {
  const { wanted: found } = await readObjects(options.podFile);
  const [wanted, another] = found;
  if (wanted === undefined || another !== undefined)
    throw new StartupError(
      `${options.podFile} contains ${found.length} pods and workloads; one Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job or CronJob is explained`,
    );
  const state =
    options.stateFile === null
      ? await keptAlive(() => readLive(options.kubeconfig))
      : await readObjects(options.stateFile);
  return { answer: await explainIn(state, wanted.pod, options.policy), workload: wanted.workload };
}

async function readLive(kubeconfig: string | null): Promise<ClusterState> {
  const client = await openKubeClient(kubeconfig, systemClock);
  try {
    return await readState(client);
  } finally {
    client.close();
  }
}
