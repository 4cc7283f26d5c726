import { setTimeout as delay } from 'node:timers/promises';
import type { SliceSnapshot } from '../../agent/node/view.js';
import type { Priority } from '../../gpu/priority.js';
import { CORES_PER_GPU } from '../../gpu/resources.js';
import { eventsPath } from '../../kube/api-path.js';
import { readEvent, type ClusterEvent } from '../../kube/cluster-event.js';
import { listAll } from '../../kube/list-all.js';
import type { Pod } from '../../kube/pod.js';
import type { GpuCluster } from './gpu-cluster.js';

/** Limits that containers should have, in the units of their slices; null: as before. */
export interface AskedLimits {
  /** Containers to which the limits apply. */
  readonly containers: readonly string[];
  /** Bytes, in sum over the GPUs of a container. */
  readonly memoryBytes: number | null;
  readonly cores: number | null;
  readonly softLimit: number | null;
  readonly priority: Priority | null;
}

/** What became of limits that were written on a pod. */
export type LimitsOutcome =
  | { readonly state: 'applied' }
  /** `why`: in the words of the agent. */
  | { readonly state: 'refused'; readonly why: string }
  /** `why`: what is known about the reason. */
  | { readonly state: 'not seen'; readonly why: string }
  /** No node runs the pod yet. */
  | { readonly state: 'not running' };

const INTERVAL_MS = 250;
const REFUSED = 'GPULimitRefused';
const CHANGED = 'GPULimitChanged';

/** The pod's events about limits, oldest first; none if they cannot be listed. */
export function limitEvents(cluster: GpuCluster, pod: Pod): Promise<readonly ClusterEvent[]> {
  return podEvents(cluster, pod, [REFUSED, CHANGED]);
}

/** The pod's events with these reasons, oldest first; none if they cannot be listed. */
export async function podEvents(
  { api }: GpuCluster,
  { namespace, name, uid }: Pod,
  reasons: readonly string[],
): Promise<readonly ClusterEvent[]> {
  const objects = await listAll(api, 'events', eventsPath(namespace), {
    fieldSelector: `involvedObject.name=${name}`,
  }).catch(() => []);
  return objects
    .map(readEvent)
    .filter((event) => event.uid === uid && reasons.includes(event.reason))
    .sort((a, b) => a.atMs - b.atMs);
}

/**
 * Waits until the agent's figures show the limits, or an event of the pod says why they were refused. `before`: events
 * that say nothing about these limits.
 */
export async function limitsOutcome(
  cluster: GpuCluster,
  pod: Pod,
  asked: AskedLimits,
  { before, waitMs }: { readonly before: readonly ClusterEvent[]; readonly waitMs: number },
): Promise<LimitsOutcome> {
  if (pod.node === null) return { state: 'not running' };
  const known = new Set(before.map(({ resourceVersion }) => resourceVersion));
  const endMs = performance.now() + waitMs;
  for (;;) {
    const { gpuPod, problems } = await cluster.podWithFigures(pod);
    const chosen = gpuPod.containers.filter(({ name }) => asked.containers.includes(name));
    const slices = chosen.map(({ allocation }) => allocation?.slices ?? null);
    if (slices.every((each) => each !== null && areInForce(each, asked))) return { state: 'applied' };
    const events = await limitEvents(cluster, pod);
    const last = events.filter(({ resourceVersion }) => !known.has(resourceVersion)).at(-1);
    if (last?.reason === REFUSED) return { state: 'refused', why: last.message };
    if (performance.now() >= endMs)
      return { state: 'not seen', why: whyNotSeen([...problems.values()], slices, events) };
    await delay(INTERVAL_MS);
  }
}

function whyNotSeen(
  problems: readonly string[],
  slices: readonly (readonly SliceSnapshot[] | null)[],
  events: readonly ClusterEvent[],
): string {
  if (problems.length > 0) return problems.join('; ');
  if (slices.includes(null)) return 'the agent of its node has no allocation for it yet';
  // The agent says the same refusal once.
  const refusal = events.findLast(({ reason }) => reason === REFUSED);
  return refusal === undefined
    ? 'its agent has other limits in force: an operator may have set them (gpu-manager limits on the node)'
    : `its agent has other limits in force, and refused before: ${refusal.message}`;
}

/** Whether the limits of a container's slices are those; of more than was allocated, what was allocated. */
function areInForce(slices: readonly SliceSnapshot[], asked: AskedLimits): boolean {
  const { memoryBytes, cores, softLimit, priority } = asked;
  const sum = slices.reduce((total, { memoryLimitBytes }) => total + (memoryLimitBytes ?? Infinity), 0);
  const given = slices.reduce((total, { allocatedMemoryBytes }) => total + (allocatedMemoryBytes ?? Infinity), 0);
  // The memory is divided among the GPUs, which loses less than a byte on each.
  const hasMemory = memoryBytes === null || Math.abs(sum - Math.min(memoryBytes, given)) < Math.max(1, slices.length);
  return (
    hasMemory &&
    slices.every(
      (slice) =>
        (cores === null || slice.share === Math.min(cores, slice.allocatedCores)) &&
        (softLimit === null ||
          slice.softLimit === (slice.share < CORES_PER_GPU && softLimit > slice.share ? softLimit : null)) &&
        (priority === null || (slice.priority ?? 'normal') === priority),
    )
  );
}
