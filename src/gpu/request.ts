import { CORES_PER_GPU, CORE_RESOURCE, MEMORY_RESOURCE, memoryBlocks } from './resources.js';

/** A refused request: `code` is for programs and metrics, `reason` for the reader of the pod's events. */
export interface RequestRefusal {
  readonly ok: false;
  readonly code: RefusalCode;
  readonly reason: string;
}

export type RefusalCode =
  | 'bad-core-count'
  | 'share-mode-off'
  | 'memory-missing'
  | 'core-missing'
  | 'memory-too-large'
  | 'nothing-fits'
  | 'unknown-ids'
  | 'unknown-container'
  | 'devices-in-use'
  | 'wrong-mode'
  | 'bad-claim'
  | 'bad-annotation'
  | 'mismatch';

export function refuse(code: RefusalCode, reason: string): RequestRefusal {
  return { ok: false, code, reason };
}

/** The request of one container, in units of the two resources. */
export interface ContainerRequest {
  readonly cores: number;
  readonly memoryBlocks: number;
}

/** A pod with more containers that request GPUs is refused. */
export const MOST_GPU_CONTAINERS = 256;

/** The refusal of a pod with more than `MOST_GPU_CONTAINERS`. */
export function tooManyContainers(count: number): string {
  return `the pod has ${count} containers that request GPUs; at most ${MOST_GPU_CONTAINERS} are supported`;
}

/** True for less than one GPU, which is placed on a single GPU with enforced limits. */
export function isFraction(cores: number): boolean {
  return cores > 0 && cores < CORES_PER_GPU;
}

/** Checks the number of `tencent.com/vcuda-core` by the rules that do not depend on the node's GPUs. */
export function checkCores(cores: number, shareMode: boolean): RequestRefusal | null {
  if (!Number.isInteger(cores) || cores <= 0)
    return refuse('bad-core-count', `${CORE_RESOURCE}: ${cores} is not a positive number`);
  if (isFraction(cores)) {
    if (shareMode) return null;
    return refuse(
      'share-mode-off',
      `${CORE_RESOURCE}: ${cores} asks for a part of a GPU, but this node does not share GPUs (--share-mode=false)`,
    );
  }
  if (cores % CORES_PER_GPU === 0) return null;
  return refuse(
    'bad-core-count',
    `${CORE_RESOURCE}: ${cores} is more than one GPU and not a multiple of ${CORES_PER_GPU}; ask for less than ${CORES_PER_GPU}, or for ${CORES_PER_GPU}, ${2 * CORES_PER_GPU}, ...`,
  );
}

/** Checks the rules that connect the two resources of one container. */
export function checkPair(request: ContainerRequest): RequestRefusal | null {
  if (request.cores === 0 && request.memoryBlocks > 0) {
    return refuse('core-missing', `${MEMORY_RESOURCE}: ${request.memoryBlocks} without ${CORE_RESOURCE}; ask for both`);
  }
  if (isFraction(request.cores) && request.memoryBlocks === 0) {
    return refuse(
      'memory-missing',
      `${CORE_RESOURCE}: ${request.cores} is a part of a GPU and needs ${MEMORY_RESOURCE} as well`,
    );
  }
  return null;
}

/** Refuses memory that even unused GPUs of this node do not have; `gpus`: how many the container gets. */
export function checkMemory(
  request: ContainerRequest,
  gpuMemoryBytes: readonly number[],
  gpus: number,
): RequestRefusal | null {
  const blocks = gpuMemoryBytes.map(memoryBlocks).sort((a, b) => b - a);
  const most = blocks.slice(0, gpus).reduce((sum, count) => sum + count, 0);
  if (request.memoryBlocks <= most) return null;
  const what = gpus === 1 ? 'the largest GPU of this node has' : `the ${gpus} largest GPUs of this node have`;
  return refuse(
    'memory-too-large',
    `${MEMORY_RESOURCE}: ${request.memoryBlocks} blocks of 256 MiB, but ${what} ${most}`,
  );
}
