import { divisionOf } from '../gpu/division.js';
import { FOREIGN_RESOURCES } from '../gpu/foreign-requests.js';
import { ANY_GPUS, readSelection, selectionFor, type GpuSelection } from '../gpu/gpu-selection.js';
import { MEMORY_BLOCK_BYTES } from '../gpu/resources.js';
import { gpuRequestOf, namedGpus } from '../kube/pod-gpus.js';
import type { Pod, PodContainer } from '../kube/pod.js';
import { GROUP_LABEL } from '../manifests/group-label.js';
import type { PodRow, PodState, SliceRow } from './rows.js';

/** Reasons by which a kubelet says that it refused a pod. */
const REFUSALS = /^(?:UnexpectedAdmissionError|OutOf.*)$/u;

/**
 * The row of a pod without the slices of its claims; null for a pod with neither GPUs nor claims, and for one that
 * ended by itself. A pod without a node that asks another project for GPUs has a row, because its author may wonder.
 */
export function podRow(pod: Pod): PodRow | null {
  const slices = slicesOf(pod);
  const claims = pod.claims.map(({ claimName, madeName }) => claimName || madeName).filter((name) => name !== '');
  const foreign = pod.node === null ? foreignOf(pod) : [];
  if (slices.length === 0 && claims.length === 0 && foreign.length === 0) return null;
  const state = stateOf(pod);
  if (state === null) return null;
  const why = whyOf(pod, state);
  const since = sinceOf(pod, state);
  const { uid, namespace, name, node, nominatedNode, controller, priority, labels } = pod;
  const group = labels[GROUP_LABEL] ?? '';
  return {
    uid,
    namespace,
    name,
    ...(node === null ? {} : { node }),
    state,
    ...(since === null ? {} : { sinceMs: since }),
    ...(controller === null ? {} : { workload: `${controller.kind} ${controller.name}` }),
    priority,
    ...(why === '' ? {} : { why }),
    ...(node !== null || nominatedNode === null ? {} : { nominatedNode }),
    ...(claims.length === 0 ? {} : { claims }),
    slices,
    ...(group === '' ? {} : { group }),
    ...(foreign.length === 0 ? {} : { foreign }),
  };
}

/** What the pod asks of other projects, such as `2 nvidia.com/gpu`. */
function foreignOf({ containers, initContainers }: Pod): readonly string[] {
  return FOREIGN_RESOURCES.flatMap((name) => {
    const asked = [...containers, ...initContainers].map(({ extended }) => Number(extended(name)) || 0);
    const total = asked.reduce((sum, amount) => sum + amount, 0);
    return total === 0 ? [] : [`${total} ${name}`];
  });
}

function stateOf({ isDone, isLeaving, phase, reason, node }: Pod): PodState | null {
  if (isDone) return phase === 'Failed' && REFUSALS.test(reason) ? 'refused' : null;
  if (isLeaving) return 'ending';
  if (node === null) return 'waiting';
  return phase === 'Running' ? 'running' : 'starting';
}

function whyOf({ unscheduled, isGated, containers, initContainers, message }: Pod, state: PodState): string {
  switch (state) {
    case 'waiting':
      return unscheduled || (isGated ? 'its scheduling gates hold it back' : 'the scheduler has not tried it yet');
    case 'starting':
      return [...initContainers, ...containers].map(({ waiting }) => waiting).find((text) => text !== '') ?? '';
    case 'refused':
      return message;
    default:
      return '';
  }
}

function sinceOf({ createdAt, scheduledAt, admittedAt, deletedAt }: Pod, state: PodState): number | null {
  switch (state) {
    case 'waiting':
      return createdAt;
    case 'starting':
      return scheduledAt ?? createdAt;
    case 'ending':
      return deletedAt;
    default:
      return admittedAt ?? scheduledAt ?? createdAt;
  }
}

/** The slices of all containers; an init container that ends before them uses the GPUs of those that follow. */
function slicesOf({ containers, initContainers, annotations, node }: Pod): SliceRow[] {
  const sidecars = initContainers.filter(({ isSidecar }) => isSidecar);
  const indexes = containers.map((_, at) => at);
  const read = readSelection((key) => annotations[key]);
  const selection = read.ok ? read.selection : ANY_GPUS;
  const named = node === null ? null : namedGpus(annotations, node, indexes);
  return [
    ...containers.flatMap((container, at) =>
      slicesOfContainer(container, selection, named?.find((gpus) => gpus.container === at)?.indexes ?? null),
    ),
    ...sidecars.flatMap((container) => slicesOfContainer(container, selection, null)),
  ];
}

function slicesOfContainer(
  container: PodContainer,
  selection: GpuSelection,
  gpus: readonly number[] | null,
): SliceRow[] {
  const { cores, memoryBlocks } = gpuRequestOf(container);
  if (!Number.isSafeInteger(cores) || cores <= 0) return [];
  const division = divisionOf(cores, selectionFor(selection, container.name));
  const count = Math.max(1, Math.floor(division.gpus));
  const memoryBytes = Math.floor((memoryBlocks * MEMORY_BLOCK_BYTES) / count);
  const known = gpus !== null && gpus.length === count ? gpus : null;
  // A request for more GPUs than a node has is one line: it never runs.
  const shown = known ?? (count > MAX_UNPLACED ? [null] : Array.from({ length: count }, () => null));
  return shown.map((gpu) => ({
    container: container.name,
    gpu,
    cores: shown.length === 1 ? cores : division.coresEach,
    memoryBytes: shown.length === 1 ? memoryBlocks * MEMORY_BLOCK_BYTES : memoryBytes,
  }));
}

/** Slices of one container without a known GPU are listed up to this number. */
const MAX_UNPLACED = 31;
