import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../gpu/resources.js';
import { wholeQuantity } from '../manifests/quantity.js';

/** An amount of memory of one GPU: bytes, or a percentage of the GPU's memory. */
export type MemoryAmount = { readonly bytes: number } | { readonly percent: number };

/** What one `nvidia.com/gpu` stands for. */
export interface GpuShare {
  readonly cores: number;
  readonly memory: MemoryAmount;
}

export const WHOLE_GPU: GpuShare = { cores: CORES_PER_GPU, memory: { percent: 100 } };

/** The form of a share in messages. */
export const SHARE_FORM = 'whole, or cores=25,memory=8GiB, or cores=25,memory=25%';

/** Reads `whole` or `cores=25,memory=8GiB`; null for anything else. */
export function readShare(text: string): GpuShare | null {
  if (text === 'whole') return WHOLE_GPU;
  const fields = new Map(text.split(',').map((field) => field.trim().split('=', 2) as [string, string | undefined]));
  if ([...fields.keys()].sort().join(',') !== 'cores,memory') return null;
  const cores = fields.get('cores') ?? '';
  const memory = readMemory(fields.get('memory') ?? '');
  if (!/^\d{1,3}$/u.test(cores) || Number(cores) < 1 || Number(cores) > CORES_PER_GPU || memory === null) return null;
  return { cores: Number(cores), memory };
}

/** Reads `8GiB`, `8Gi`, `8192MiB`, `25%`, or blocks of 256 MiB such as `32`; null for anything else. */
export function readMemory(text: string): MemoryAmount | null {
  const percent = /^(\d{1,3})%$/u.exec(text)?.[1];
  if (percent !== undefined)
    return Number(percent) >= 1 && Number(percent) <= 100 ? { percent: Number(percent) } : null;
  if (/^\d{1,9}$/u.test(text)) return Number(text) > 0 ? { bytes: Number(text) * MEMORY_BLOCK_BYTES } : null;
  const bytes = wholeQuantity(text.replace(/iB$/u, 'i'));
  return bytes !== null && bytes > 0 ? { bytes } : null;
}
