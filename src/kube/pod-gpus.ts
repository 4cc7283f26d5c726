import { GPU_ASSIGNED_KEY, PREDICATE_NODE_KEY, predicateGpuIndexKey } from '../gpu/annotations.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../gpu/resources.js';
import { reservedAmounts } from '../manifests/gpu-resize.js';
import { parseQuantity } from '../manifests/quantity.js';
import type { Pod, PodContainer } from './pod.js';

/** The amounts of both GPU resources that a container requests; 0 without a request. */
export function gpuRequestOf(container: PodContainer): { readonly cores: number; readonly memoryBlocks: number } {
  return { cores: amountOf(container, CORE_RESOURCE), memoryBlocks: amountOf(container, MEMORY_RESOURCE) };
}

/** The amounts that a container of a pod on a node has, or may get by its resize; without resize what it requests. */
export function gpuAmountsOf({ node, annotations }: Pick<Pod, 'node' | 'annotations'>, container: PodContainer) {
  const requested = gpuRequestOf(container);
  if (node === null || requested.cores === 0) return requested;
  return reservedAmounts((key) => annotations[key], container.name, requested);
}

/** The GPUs that the annotations of a pod name for one container. */
export interface NamedGpus {
  /** Index in `spec.containers`. */
  readonly container: number;
  readonly indexes: readonly number[];
}

/**
 * GPUs from annotations that were made for this node; null if they name none. Annotations of an unbound pod are
 * ignored: they are old, or were copied with a manifest.
 */
export function namedGpus(
  annotations: Readonly<Record<string, string>>,
  nodeName: string,
  containers: readonly number[],
): readonly NamedGpus[] | null {
  const decidedFor = annotations[PREDICATE_NODE_KEY];
  if (decidedFor !== undefined && decidedFor !== nodeName && annotations[GPU_ASSIGNED_KEY] !== 'true') return null;
  const gpus = containers.flatMap((container) => {
    const text = annotations[predicateGpuIndexKey(container)];
    if (text === undefined || !/^\d{1,3}(?:,\d{1,3})*$/u.test(text)) return [];
    return [{ container, indexes: text.split(',').map(Number) }];
  });
  return gpus.length === 0 ? null : gpus;
}

function amountOf(container: PodContainer, resource: string): number {
  // Parsed in thousandths, so that a fraction is detected and refused.
  const read = parseQuantity(container.extended(resource), 3, 'up');
  return read.ok ? Number(read.amount) / 1000 : 0;
}
