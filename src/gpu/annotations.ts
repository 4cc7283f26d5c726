/** Annotation and label keys, shared with the scheduler extender and kept from tkestack gpu-manager. */

/**
 * Pod annotation: comma list of the GPU indexes of `spec.containers[i]`; the index i counts containers without GPU too.
 */
export function predicateGpuIndexKey(containerIndex: number): string {
  return `tencent.com/predicate-gpu-idx-${containerIndex}`;
}

/**
 * Pod annotation beside `predicateGpuIndexKey`: the same GPUs by UUID, as a comma list of `<index>:<uuid>` in ascending
 * order of the indexes. The driver numbers GPUs anew where one is taken out or divided. Readers of this project use the
 * UUIDs, if both annotations name the same indexes: other programs know and write the indexes alone.
 */
export function predicateGpuUuidKey(containerIndex: number): string {
  return `tencent.com/predicate-gpu-uuid-${containerIndex}`;
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

/** Pod annotation: soft limit of compute, in cores. */
export const CORE_LIMIT_KEY = 'tencent.com/vcuda-core-limit';

/**
 * Pod annotation: memory limit of each running container, lower than its allocation. Blocks of 256 MiB, as in
 * `tencent.com/vcuda-memory`, or bytes with a unit ("1536Mi").
 */
export const MEMORY_LIMIT_KEY = 'tencent.com/vcuda-memory-limit';

/** Pod annotation: hard share of each running container in cores, lower than its allocation. */
export const SHARE_LIMIT_KEY = 'tencent.com/vcuda-share-limit';

/** Pod annotation: priority of the pod's slices on their GPUs: `high`, `normal` or `low`. */
export const PRIORITY_KEY = 'tencent.com/vcuda-priority';

/**
 * Pod annotation: memory class of each container: `low` may hold device memory beyond its allocation, on the host;
 * `normal` (the default) and `high` may not.
 */
export const MEMORY_OVERSUBSCRIBE_KEY = 'tencent.com/vcuda-memory-oversubscribe';

/**
 * Pod annotation: whether the limits of its containers are enforced (`limits`, the default) or only compared with their
 * use (`none`), if the node allows that.
 */
export const ENFORCEMENT_KEY = 'tencent.com/vcuda-enforcement';

/**
 * Pod annotation: what its owner asks for each running container: to be `suspended` (until a call of it wants its GPU),
 * `held` (until someone resumes it) or `running`; anything after `@` makes the same request a new one.
 */
export const SUSPEND_KEY = 'tencent.com/vcuda-suspend';

/** Pod annotation: how long a container must be idle to be suspended, such as `15m`; `never` for none. */
export const SUSPEND_IDLE_KEY = 'tencent.com/vcuda-suspend-idle';

/**
 * Pod annotation: whether several whole GPUs of a container must be of one model and memory (`required`), or only if
 * possible (`preferred`, the default).
 */
export const EQUAL_GPUS_KEY = 'tencent.com/equal-gpus';

/** Pod annotation: comma list of parts of GPU model names, of which each GPU's model contains one, in any case. */
export const MODELS_KEY = 'tencent.com/use-gpu-model';

/** Pod annotation: comma list of parts of GPU model names, of which no GPU's model contains one, in any case. */
export const EXCLUDED_MODELS_KEY = 'tencent.com/nouse-gpu-model';

/** Pod annotation: comma list of the UUIDs of the only GPUs that the pod may get. */
export const UUIDS_KEY = 'tencent.com/use-gpu-uuid';

/** Pod annotation: comma list of the UUIDs of GPUs that the pod does not get. */
export const EXCLUDED_UUIDS_KEY = 'tencent.com/nouse-gpu-uuid';

/**
 * Pod annotation: whether several whole GPUs of a container must be near one NUMA node (`required`), or only if
 * possible (`preferred`, the default). CPUs near the GPUs are another matter: `CPU_AFFINITY_KEY`.
 */
export const SAME_NUMA_KEY = 'tencent.com/same-numa';

/**
 * Pod annotation: on how many GPUs each container of the pod has its request, in equal parts; `main=2,side=4` says it
 * by container. Absent or `1`: cores below 100 are a part of one GPU.
 */
export const GPUS_KEY = 'tencent.com/vcuda-gpus';

/**
 * Pod annotation: how the pod's parts of GPUs are shared: in time (`time`, the default), or in multiprocessors (`sm`),
 * by MPS on GPUs that a node has for this.
 */
export const COMPUTE_KEY = 'tencent.com/vcuda-compute';

/** Pod annotation: whether a part of a GPU goes to the fullest GPU with room (`binpack`) or the emptiest (`spread`). */
export const GPU_POLICY_KEY = 'tencent.com/gpu-policy';

/** Pod annotation: whether the pod goes to the fullest node with room (`binpack`) or to the emptiest (`spread`). */
export const NODE_POLICY_KEY = 'tencent.com/node-policy';

/**
 * Pod annotation: `"true"` lets the agent suspend the pod's containers while others work. On a node with a suspend
 * factor they may get capacity beyond the real GPU. Counts when the pod is admitted; later changes are ignored.
 */
export const SUSPENDABLE_KEY = 'tencent.com/vcuda-suspendable';

/** Container annotation (through the CRI): `/dev/nvidia0,/dev/nvidia1`. */
export const DEVICE_KEY = 'tencent.com/vcuda-device';

/** Node annotation: the node's GPUs as its agent sees them, for the scheduler extender; see `node-inventory.ts`. */
export const NODE_INVENTORY_KEY = 'tencent.com/gpu-inventory';

/**
 * Labels of the node that describe its GPUs. The first is the original's; selectors and quotas name GPUs by it, and the
 * extender knows by the first two the GPUs of a node without inventory.
 */
export const GPU_MODEL_LABEL = 'gaia.tencent.com/gpu-model';
export const GPU_PRODUCT_LABEL = 'gaia.tencent.com/gpu-product';
export const DRIVER_VERSION_LABEL = 'gaia.tencent.com/gpu-driver-version';
export const CUDA_VERSION_LABEL = 'gaia.tencent.com/cuda-version';

/**
 * Label of a node with GPUs whose multiprocessors are shared: `sm`, or `time-and-sm` where others are shared in time. A
 * node that shares all its GPUs in time has no such label.
 */
export const COMPUTE_LABEL = 'tencent.com/gpu-compute';

/** Pod annotation: whether the pod's containers are bound to CPUs near their GPUs: `off`, `prefer` or `strict`. */
export const CPU_AFFINITY_KEY = 'tencent.com/gpu-numa';

/**
 * Label of a namespace or pod: `dra` converts requests for the two extended resources, and those of other projects,
 * into resource claims; `device-plugin` converts those of other projects into the two extended resources.
 */
export const CONVERSION_LABEL = 'tencent.com/vcuda-via';
export const CONVERTED = 'dra';
export const CONVERTED_TO_RESOURCES = 'device-plugin';

/** Annotation of a namespace or pod with what one `nvidia.com/gpu` stands for, such as `cores=25,memory=8GiB`. */
export const GPU_SHARE_KEY = 'tencent.com/gpu-share';
