import { GPU_ASSIGNED_KEY, PREDICATE_NODE_KEY, predicateGpuIndexKey, predicateGpuUuidKey } from '../gpu/annotations.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../gpu/resources.js';
import { readResize, sameAmounts, type GpuAmounts } from '../manifests/gpu-resize.js';
import { parseQuantity } from '../manifests/quantity.js';
import type { Pod, PodContainer } from './pod.js';

/** The amounts of both GPU resources that a container requests; 0 without a request. */
export function gpuRequestOf(container: PodContainer): { readonly cores: number; readonly memoryBlocks: number } {
  return { cores: amountOf(container, CORE_RESOURCE), memoryBlocks: amountOf(container, MEMORY_RESOURCE) };
}

/**
 * The amounts that a container of a pod on a node asks for by a resize; null if it asks for no more than it requests.
 * The status of the resize does not count: the author of the pod may write it as well.
 */
export function askedByResize(
  { node, annotations }: Pick<Pod, 'node' | 'annotations'>,
  container: PodContainer,
): GpuAmounts | null {
  const requested = gpuRequestOf(container);
  if (node === null || requested.cores === 0) return null;
  const asked = readResize((key) => annotations[key], container.name, requested)?.amounts ?? requested;
  return sameAmounts(asked, requested) ? null : asked;
}

/** The GPUs that the annotations of a pod name for one container. */
export interface NamedGpus {
  /** Index in `spec.containers`. */
  readonly container: number;
  /** As the driver numbered them when the annotation was written. */
  readonly indexes: readonly number[];
  /** Their UUIDs, in the same order; absent where the annotations name indexes only. */
  readonly uuids?: readonly string[];
}

/** The annotations that name the GPUs of a container. */
export function namingAnnotations({ container, indexes, uuids }: NamedGpus): Record<string, string> {
  const byIndex = { [predicateGpuIndexKey(container)]: indexes.join(',') };
  if (uuids === undefined) return byIndex;
  const pairs = indexes.map((index, at) => `${index}:${uuids[at]}`);
  return { ...byIndex, [predicateGpuUuidKey(container)]: pairs.join(',') };
}

/** The GPUs that annotations name for `spec.containers[container]`; null if they name none. */
export function gpusNamedFor(
  annotation: (key: string) => string | undefined,
  container: number,
): Omit<NamedGpus, 'container'> | null {
  const text = annotation(predicateGpuIndexKey(container));
  if (text === undefined || !/^\d{1,3}(?:,\d{1,3})*$/u.test(text)) return null;
  const indexes = text.split(',').map(Number);
  const pairs = annotation(predicateGpuUuidKey(container))?.split(',') ?? [];
  const uuids = pairs.map((pair) => /^\d{1,3}:([\w/.-]{1,96})$/u.exec(pair)?.[1] ?? '');
  const isSame = pairs.map((pair) => pair.split(':')[0]).join() === text && !uuids.includes('');
  return { indexes, ...(isSame ? { uuids } : {}) };
}

/** The present indexes of named GPUs among those of their node; GPUs that it lacks are left out. */
export function presentIndexes(
  { indexes, uuids }: Omit<NamedGpus, 'container'>,
  gpus: readonly { readonly index: number; readonly uuid: string }[],
): readonly number[] {
  if (uuids === undefined) return indexes;
  return uuids.flatMap((uuid) => gpus.find((gpu) => gpu.uuid === uuid)?.index ?? []);
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
    const named = gpusNamedFor((key) => annotations[key], container);
    return named === null ? [] : [{ container, ...named }];
  });
  return gpus.length === 0 ? null : gpus;
}

function amountOf(container: PodContainer, resource: string): number {
  // Parsed in thousandths, so that a fraction is detected and refused.
  const read = parseQuantity(container.extended(resource), 3, 'up');
  return read.ok ? Number(read.amount) / 1000 : 0;
}
