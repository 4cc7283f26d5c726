/** Annotation and label keys, shared with the scheduler extender and kept from tkestack gpu-manager. */

/**
 * Pod annotation: comma list of the GPU indexes of `spec.containers[i]`; the index i counts containers without GPU too.
 */
export function predicateGpuIndexKey(containerIndex: number): string {
  return `tencent.com/predicate-gpu-idx-${containerIndex}`;
}

/**
 * Pod annotation: comma list of the GPU indexes of `spec.initContainers[i]`, sidecars included. The original has no
 * annotation for init containers; the node agent writes this one when the container starts.
 */
export function initGpuIndexKey(initContainerIndex: number): string {
  return `tencent.com/init-gpu-idx-${initContainerIndex}`;
}

/** Pod annotation: time of the scheduler extender's decision, in nanoseconds since 1970, decimal. */
export const PREDICATE_TIME_KEY = 'tencent.com/predicate-time';

/** Pod annotation: the node that the scheduler extender chose. */
export const PREDICATE_NODE_KEY = 'tencent.com/predicate-node';

/** Pod annotation: `"true"` once the node agent confirmed the GPUs, `"false"` while they are only predicted. */
export const GPU_ASSIGNED_KEY = 'tencent.com/gpu-assigned';

/** Pod annotation: soft limit of compute, in hundredths of a GPU. */
export const CORE_LIMIT_KEY = 'tencent.com/vcuda-core-limit';

/**
 * Pod annotation: memory limit of each running container, lower than its allocation. Blocks of 256 MiB, as in
 * `tencent.com/vcuda-memory`, or bytes with a unit ("1536Mi").
 */
export const MEMORY_LIMIT_KEY = 'tencent.com/vcuda-memory-limit';

/** Pod annotation: hard share of each running container in hundredths of a GPU, lower than its allocation. */
export const SHARE_LIMIT_KEY = 'tencent.com/vcuda-share-limit';

/** Pod annotation: priority of the pod's slices on their GPUs: `high`, `normal` or `low`. */
export const PRIORITY_KEY = 'tencent.com/vcuda-priority';

/**
 * Pod annotation: whether each container may hold device memory beyond its booked amount, on the host (`low`), or never
 * (`normal`, as without it, and `high`).
 */
export const MEMORY_OVERSUBSCRIBE_KEY = 'tencent.com/vcuda-memory-oversubscribe';

/**
 * Pod annotation: whether the limits of its containers are enforced (`limits`, the default) or only compared with their
 * use (`none`), if the node allows that.
 */
export const ENFORCEMENT_KEY = 'tencent.com/vcuda-enforcement';

/**
 * Pod annotation: whether several whole GPUs of a container must be of one model and memory (`required`), or only if
 * possible (`preferred`, the default).
 */
export const EQUAL_GPUS_KEY = 'tencent.com/equal-gpus';

/** Reads the annotation; null for an invalid value. */
export function readEqualGpus(text: string | undefined): 'required' | 'preferred' | null {
  return text === undefined ? 'preferred' : text === 'required' || text === 'preferred' ? text : null;
}

/** Container annotation (through the CRI): `/dev/nvidia0,/dev/nvidia1`. */
export const DEVICE_KEY = 'tencent.com/vcuda-device';

/** Node annotation: the node's GPUs as its agent sees them, for the scheduler extender; see `node-inventory.ts`. */
export const NODE_INVENTORY_KEY = 'tencent.com/gpu-inventory';

/** Pod annotation: whether the pod's containers are bound to CPUs near their GPUs: `off`, `prefer` or `strict`. */
export const CPU_AFFINITY_KEY = 'tencent.com/gpu-numa';

/** Label of a namespace or pod: `dra` converts requests for the two extended resources into resource claims. */
export const CONVERSION_LABEL = 'tencent.com/vcuda-via';
export const CONVERTED = 'dra';
