/** Resource names by which pods ask other projects for GPUs: NVIDIA's device plugin, and HAMi's shares. */
export const NVIDIA_GPU = 'nvidia.com/gpu';
export const HAMI_MEMORY = 'nvidia.com/gpumem';
export const HAMI_MEMORY_PERCENTAGE = 'nvidia.com/gpumem-percentage';
export const HAMI_CORES = 'nvidia.com/gpucores';
/** Beside a request: 0 is high, 1 is low. */
export const HAMI_PRIORITY = 'nvidia.com/priority';

export const FOREIGN_RESOURCES: readonly string[] = [NVIDIA_GPU, HAMI_MEMORY, HAMI_MEMORY_PERCENTAGE, HAMI_CORES];
