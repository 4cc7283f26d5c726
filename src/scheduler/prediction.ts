import { GPU_ASSIGNED_KEY, PREDICATE_NODE_KEY, PREDICATE_TIME_KEY } from '../gpu/annotations.js';
import type { ContainerGpus } from '../gpu/pods/pod-placement.js';
import { namingAnnotations } from '../kube/pod-gpus.js';

/**
 * The annotations of a decision, as the original's extender writes them: the node agent uses the named GPUs if they are
 * still free. GPUs of sidecars follow the GPUs of `spec.containers`.
 */
export function predictionAnnotations(
  node: string,
  gpus: readonly ContainerGpus[],
  nowMs: number,
): Record<string, string> {
  return {
    [PREDICATE_NODE_KEY]: node,
    [GPU_ASSIGNED_KEY]: 'false',
    [PREDICATE_TIME_KEY]: (BigInt(Math.floor(nowMs)) * 1_000_000n).toString(),
    ...Object.fromEntries(gpus.flatMap((named) => Object.entries(namingAnnotations(named)))),
  };
}
