import type { ExcludedGpu, GpuDetails } from './driver.js';

const GIB = 1024 ** 3;

/** Notes for operators about a set of GPUs: none at all, different models, excluded GPUs with the reason. */
export function inventoryNotes(gpus: readonly GpuDetails[], excluded: readonly ExcludedGpu[]): string[] {
  const kinds = new Set(gpus.map((gpu) => `${gpu.model} (${(gpu.memoryBytes / GIB).toFixed(1)} GiB)`));
  return [
    ...(gpus.length === 0 ? ['no GPU that can be shared'] : []),
    ...(kinds.size > 1 ? [`unequal GPUs: ${[...kinds].join(', ')}; a set of several GPUs may mix them`] : []),
    ...excluded.map(({ gpu, reason }) => `GPU ${gpu.index} (${gpu.uuid}) is excluded: ${reason}`),
  ];
}
