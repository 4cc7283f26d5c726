import type { ContainerDemand } from '../gpu/pods/pod-demand.js';
import { MEMORY_BLOCK_BYTES } from '../gpu/resources.js';
import { checkRequest, dividedRequest } from '../gpu/division.js';
import { ANY_GPUS, readSelection, selectionFor, type GpuSelection } from '../gpu/gpu-selection.js';
import type { Demand } from './placement/demand.js';
import { demandOf, needsGpu } from './placement/demand.js';
import type { ContainerGpus } from '../gpu/pods/pod-placement.js';
import { MOST_GPU_CONTAINERS, tooManyContainers } from '../gpu/request.js';
import { misspeltKey } from '../kube/misspelt-key.js';
import type { Pod, PodContainer } from '../kube/pod.js';
import { groupMinimumOf, groupOf } from './pod-groups.js';
import { askedByResize, gpuRequestOf, namedGpus } from '../kube/pod-gpus.js';

/** The fields of a pod that the extender uses. */
export interface PodView {
  readonly uid: string;
  /** Two views of one pod with the same version are equal; empty for a pod that no API server has stored. */
  readonly resourceVersion: string;
  readonly namespace: string;
  readonly name: string;
  /** Null while no node is chosen. */
  readonly nodeName: string | null;
  /** Whether it has ended: it uses no resources, though it may still exist. */
  readonly ended: boolean;
  /** Whether it is being deleted: its resources will be free. */
  readonly leaving: boolean;
  /** Time by which a pod that is being deleted must end, in milliseconds since 1970; null for other pods. */
  readonly endsBy: number | null;
  /** Its labels, for the selectors of disruption budgets; empty for a pod without GPUs. */
  readonly labels: Readonly<Record<string, string>>;
  /** The nominated node, on which victims are evicted for it; null without one. */
  readonly nominatedNode: string | null;
  readonly priority: number;
  /** Key of the group of pods that start together or not at all; null without one. */
  readonly group: string | null;
  /** How many members its group needs, if the pod says so; else null. */
  readonly groupMinimum: number | null;
  /** Whether the scheduler has written that it found no node. */
  readonly isUnscheduled: boolean;
  readonly demand: Demand;
  /** The error in its request, for its author; null for a valid one. */
  readonly brokenRule: string | null;
  /**
   * Whether its init containers have ended, so that capacity that only they requested is free. True for a pod without
   * init containers.
   */
  readonly initEnded: boolean;
  /** The GPUs that its annotations name, if these are valid; else null. */
  readonly gpus: readonly ContainerGpus[] | null;
}

/** Number of distinct demands, and of distinct sets of labels, that are shared between pods. */
const MAX_SHARED = 10_000;

const NO_LABELS = {};

/** Reads pods, with one demand object and one set of labels for all equal pods: most pods are replicas. */
export class PodViews {
  readonly #demands = new Map<string, Demand>();
  readonly #labels = new Map<string, PodView['labels']>();

  /** Like `viewPod`, with shared demands and labels. */
  view(pod: Pod): PodView {
    const view = viewPod(pod);
    return { ...view, demand: this.#shareDemand(view.demand), labels: this.#shareLabels(view.labels) };
  }

  #shareDemand(demand: Demand): Demand {
    const known = this.#demands.get(demand.key);
    if (known !== undefined && sameContainers(known, demand)) return known;
    return share(this.#demands, demand.key, demand);
  }

  #shareLabels(labels: PodView['labels']): PodView['labels'] {
    if (labels === NO_LABELS) return labels;
    const key = JSON.stringify(labels);
    return this.#labels.get(key) ?? share(this.#labels, key, labels);
  }
}

function share<T>(shared: Map<string, T>, key: string, value: T): T {
  if (shared.size >= MAX_SHARED) shared.clear();
  shared.set(key, value);
  return value;
}

/** Keys contain the requests, but not the indexes of their containers. */
function sameContainers(a: Demand, b: Demand): boolean {
  return a.containers.every(({ container }, at) => container === b.containers[at]?.container);
}

/** Reads the fields of a pod that the extender uses. */
export function viewPod(pod: Pod): PodView {
  const { containers, initContainers: init } = pod;
  const sidecars = init.filter(({ isSidecar }) => isSidecar);
  const read = readSelection((key) => pod.annotations[key]);
  const selection = read.ok ? read.selection : ANY_GPUS;
  const ofContainers = [
    ...gpuDemands(pod, selection, containers),
    ...sidecars.flatMap((sidecar) => gpuDemands(pod, selection, [sidecar], containers.length + init.indexOf(sidecar))),
  ];
  const ofInit = init.flatMap((container, at) =>
    container.isSidecar ? [] : gpuDemands(null, selection, [container], at),
  );
  const gpuContainers = ofContainers.length + ofInit.length;
  // The other requests of a pod that is refused are not added up: there may be thousands.
  const needs = gpuContainers > MOST_GPU_CONTAINERS ? tooMany(gpuContainers) : pod.needs();
  const amount = (resource: string): number => (needs.ok ? Number(needs.requests[resource] ?? 0) : 0);
  const demand = demandOf({
    containers: ofContainers,
    init: ofInit,
    cpuMilli: amount('cpu'),
    hostMemoryBytes: amount('memory'),
    selector: { labels: pod.nodeSelector, terms: pod.nodeTerms },
    selection,
  });
  return {
    uid: pod.uid,
    resourceVersion: pod.resourceVersion,
    namespace: pod.namespace,
    name: pod.name,
    nodeName: pod.node,
    ended: pod.isDone,
    leaving: pod.isLeaving,
    endsBy: pod.deletedAt,
    labels: needsGpu(demand) ? pod.labels : NO_LABELS,
    nominatedNode: pod.nominatedNode,
    priority: pod.priority,
    group: groupOf(pod),
    groupMinimum: groupMinimumOf(pod),
    isUnscheduled: pod.unscheduled !== '',
    demand,
    brokenRule:
      (needs.ok ? null : needs.reason) ??
      [...init, ...containers].map((container) => brokenRuleOf(container, selection)).find((rule) => rule !== null) ??
      (!read.ok && needsGpu(demand) ? read.reason : null) ??
      (needsGpu(demand) ? misspeltKey(pod.annotations) : null),
    initEnded: demand.init.length === 0 || containers.some(({ running, terminated }) => running || terminated),
    gpus:
      pod.node === null
        ? null
        : namedGpus(
            pod.annotations,
            pod.node,
            demand.containers.map(({ container }) => container),
          ),
  };
}

function tooMany(containers: number): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: tooManyContainers(containers) };
}

/** `resizable`: the pod whose running containers may be resized; null for containers that keep what they request. */
function gpuDemands(
  resizable: Pod | null,
  selection: GpuSelection,
  containers: readonly PodContainer[],
  firstIndex = 0,
): ContainerDemand[] {
  return containers.flatMap((container, at) => {
    const request = gpuRequestOf(container);
    if (request.cores === 0) return [];
    const divided = dividedRequest(request, selectionFor(selection, container.name));
    // Only containers with one GPU can be resized.
    const asked = resizable === null || divided.gpus !== undefined ? null : askedByResize(resizable, container);
    const resize = asked && { cores: asked.cores, memoryBytes: asked.memoryBlocks * MEMORY_BLOCK_BYTES };
    const { suspendable } = selection;
    return [{ container: firstIndex + at, ...divided, ...(resize && { resize }), ...(suspendable && { suspendable }) }];
  });
}

function brokenRuleOf(container: PodContainer, selection: GpuSelection): string | null {
  const refusal = checkRequest(gpuRequestOf(container), selectionFor(selection, container.name));
  return refusal === null ? null : `container ${container.name || '?'}: ${refusal.reason}`;
}
