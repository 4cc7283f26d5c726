import { CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { GPU_ASSIGNED_KEY, PREDICATE_NODE_KEY, predicateGpuIndexKey } from '../gpu/annotations.js';
import type { ContainerDemand, Demand } from './cluster/demand.js';
import { demandOf } from './cluster/demand.js';
import type { NodeSelector } from './cluster/node-selector.js';
import type { ContainerGpus } from './cluster/pod-placement.js';
import { checkCores, checkPair } from '../gpu/request.js';
import { parseQuantity, readQuantity } from '../quota/core/quantity.js';
import type { ContainerSpec, LabelRequirement, PodObject } from './kube-objects.js';

/** A pod as the extender sees it. */
export interface PodView {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Null while no node was chosen. */
  readonly nodeName: string | null;
  /** It has ended: it uses nothing any more, though it may still exist. */
  readonly ended: boolean;
  /** It is being deleted: what it uses will be free. */
  readonly leaving: boolean;
  /** The node on which others are removed to make room for it; null for none. */
  readonly nominatedNode: string | null;
  readonly priority: number;
  readonly demand: Demand;
  /** What is wrong with its request, for its author; null for a sound one. */
  readonly brokenRule: string | null;
  /** The GPUs its annotations name, where they can be believed; else null. */
  readonly gpus: readonly ContainerGpus[] | null;
}

/** Distinct demands that are kept for sharing. */
const MAX_SHARED_DEMANDS = 10_000;

/** Reads pods, with one demand object for all pods that ask for the same: most pods are one of many replicas. */
export class PodViews {
  readonly #demands = new Map<string, Demand>();

  read(pod: PodObject): PodView {
    const view = viewPod(pod);
    const known = this.#demands.get(view.demand.key);
    if (known !== undefined && sameContainers(known, view.demand)) return { ...view, demand: known };
    if (this.#demands.size >= MAX_SHARED_DEMANDS) this.#demands.clear();
    this.#demands.set(view.demand.key, view.demand);
    return view;
  }
}

/** Keys regard what is asked, not by which container. */
function sameContainers(a: Demand, b: Demand): boolean {
  return a.containers.every(({ container }, at) => container === b.containers[at]?.container);
}

/** Reads a pod. What is missing or unreadable counts as not asked for: the API server has judged the pod before. */
export function viewPod(pod: PodObject): PodView {
  const { metadata = {}, spec = {} } = pod;
  const containers = spec.containers ?? [];
  const init = spec.initContainers ?? [];
  const sidecars = init.filter(isSidecar);
  const broken = [...init, ...containers].map(brokenRuleOf).find((rule) => rule !== null) ?? null;
  const demand = demandOf({
    containers: [
      ...gpuDemands(containers),
      ...sidecars.flatMap((sidecar) => gpuDemands([sidecar], containers.length + init.indexOf(sidecar))),
    ],
    init: init.flatMap((container, at) => (isSidecar(container) ? [] : gpuDemands([container], at))),
    cpuMilli: hostRequest(pod, 'cpu'),
    hostMemoryBytes: hostRequest(pod, 'memory'),
    selector: selectorOf(pod),
  });
  const nodeName = textOrNull(spec.nodeName);
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? 'default',
    name: metadata.name ?? '',
    nodeName,
    ended: pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed',
    leaving: (metadata.deletionTimestamp ?? null) !== null,
    nominatedNode: textOrNull(pod.status?.nominatedNodeName),
    priority: spec.priority ?? 0,
    demand,
    brokenRule: broken,
    gpus: nodeName === null ? null : namedGpus(metadata.annotations ?? {}, nodeName, demand.containers),
  };
}

function textOrNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/** Annotations that were made for this node. Those of an unbound pod are never believed: they are left over, or were copied with a manifest. */
function namedGpus(
  annotations: Readonly<Record<string, string>>,
  nodeName: string,
  wanted: readonly ContainerDemand[],
): ContainerGpus[] | null {
  const decidedFor = annotations[PREDICATE_NODE_KEY];
  if (decidedFor !== undefined && decidedFor !== nodeName && annotations[GPU_ASSIGNED_KEY] !== 'true') return null;
  const gpus = wanted.flatMap(({ container }) => {
    const text = annotations[predicateGpuIndexKey(container)];
    if (text === undefined || !/^\d{1,3}(?:,\d{1,3})*$/u.test(text)) return [];
    return [{ container, indexes: text.split(',').map(Number) }];
  });
  return gpus.length === 0 ? null : gpus;
}

function isSidecar(container: ContainerSpec): boolean {
  return container.restartPolicy === 'Always';
}

function gpuDemands(containers: readonly ContainerSpec[], firstIndex = 0): ContainerDemand[] {
  return containers.flatMap((container, at) => {
    const { cores, memoryBlocks } = requestOf(container);
    if (cores === 0) return [];
    return [{ container: firstIndex + at, cores, memoryBytes: memoryBlocks * MEMORY_BLOCK_BYTES }];
  });
}

function brokenRuleOf(container: ContainerSpec): string | null {
  const request = requestOf(container);
  if (request.cores === 0 && request.memoryBlocks === 0) return null;
  const refusal = (request.cores === 0 ? null : checkCores(request.cores, true)) ?? checkPair(request);
  return refusal === null ? null : `container ${container.name ?? '?'}: ${refusal.reason}`;
}

/** Extended resources have limits equal to their requests; either may be left out. */
function requestOf(container: ContainerSpec): { cores: number; memoryBlocks: number } {
  return { cores: amountOf(container, CORE_RESOURCE), memoryBlocks: amountOf(container, MEMORY_RESOURCE) };
}

function amountOf(container: ContainerSpec, resource: string): number {
  const { limits, requests } = container.resources ?? {};
  // In thousandths, so that a fraction is seen and refused.
  const read = parseQuantity(limits?.[resource] ?? requests?.[resource] ?? 0, 3, 'up');
  return read.ok ? Number(read.amount) / 1000 : 0;
}

/** What the scheduler counts for a pod: its containers together, or its largest init container beside the sidecars before it. */
function hostRequest(pod: PodObject, resource: 'cpu' | 'memory'): number {
  const { spec = {} } = pod;
  const amount = (quantity: string | number | undefined): number => {
    const read = readQuantity(resource, quantity ?? 0, 'up');
    return read.ok ? Number(read.amount) : 0;
  };
  const of = ({ resources }: ContainerSpec): number =>
    amount(resources?.requests?.[resource] ?? resources?.limits?.[resource]);
  let sidecars = 0;
  let starting = 0;
  for (const container of spec.initContainers ?? []) {
    if (isSidecar(container)) sidecars += of(container);
    starting = Math.max(starting, sidecars + (isSidecar(container) ? 0 : of(container)));
  }
  const running = (spec.containers ?? []).reduce((sum, container) => sum + of(container), sidecars);
  return Math.max(starting, running) + amount(spec.overhead?.[resource]);
}

function selectorOf(pod: PodObject): NodeSelector {
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return {
    labels: pod.spec?.nodeSelector ?? {},
    terms:
      terms?.map((term) => ({
        labels: (term.matchExpressions ?? []).map(requirementOf),
        fields: (term.matchFields ?? []).map(requirementOf),
      })) ?? null,
  };
}

function requirementOf({ key = '', operator = '', values = [] }: LabelRequirement): Required<LabelRequirement> {
  return { key, operator, values };
}
