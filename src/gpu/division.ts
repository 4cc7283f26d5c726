import { COMPUTE_KEY, GPUS_KEY, SUSPENDABLE_KEY } from './annotations.js';
import { ANY_GPUS, type GpuSelection } from './gpu-selection.js';
import { checkCores, checkPair, refuse, type ContainerRequest, type RequestRefusal } from './request.js';
import { CORES_PER_GPU, CORE_RESOURCE, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from './resources.js';

/** How the request of a container is laid out over GPUs. */
export interface Division {
  readonly gpus: number;
  /** Cores of each of these GPUs: 100 for whole GPUs. */
  readonly coresEach: number;
}

/** The division of so many cores. The annotation changes nothing where each GPU would be whole. */
export function divisionOf(cores: number, selection: GpuSelection = ANY_GPUS): Division {
  const { gpus } = selection;
  if (gpus > 1 && cores < gpus * CORES_PER_GPU) return { gpus, coresEach: cores / gpus };
  if (cores < CORES_PER_GPU) return { gpus: 1, coresEach: cores };
  return { gpus: cores / CORES_PER_GPU, coresEach: CORES_PER_GPU };
}

/** True where a container gets parts of several GPUs. */
export function isDivided({ gpus, coresEach }: Division): boolean {
  return gpus > 1 && coresEach < CORES_PER_GPU;
}

/** What placement is asked for: of each GPU if these are parts, in sum if they are whole. */
export interface DividedRequest {
  readonly cores: number;
  readonly memoryBytes: number;
  /** How many GPUs each have that part; absent: one. */
  readonly gpus?: number;
}

/** A request as placement takes it. */
export function dividedRequest(
  { cores, memoryBlocks }: ContainerRequest,
  selection: GpuSelection = ANY_GPUS,
): DividedRequest {
  const division = divisionOf(cores, selection);
  const memoryBytes = memoryBlocks * MEMORY_BLOCK_BYTES;
  if (!isDivided(division)) return { cores, memoryBytes };
  return { cores: division.coresEach, memoryBytes: memoryBytes / division.gpus, gpus: division.gpus };
}

/**
 * Checks the amounts of one container by the rules that do not depend on the node's GPUs, as its pod's annotations
 * divide them.
 */
export function checkRequest(
  request: ContainerRequest,
  selection: GpuSelection = ANY_GPUS,
  shareMode = true,
): RequestRefusal | null {
  const { cores, memoryBlocks } = request;
  const { gpus, compute } = selection;
  if (selection.suspendable === true && divisionOf(cores, selection).gpus > 1)
    return refuse(
      'bad-annotation',
      `annotation ${SUSPENDABLE_KEY} is "true", but ${CORE_RESOURCE}: ${cores} asks for several GPUs; only containers with one GPU can be suspended`,
    );
  if (compute === 'sm' && cores > 0 && (gpus > 1 || cores > CORES_PER_GPU))
    return refuse(
      'bad-core-count',
      `annotation ${COMPUTE_KEY} is "sm", which is for one GPU per container, but ${CORE_RESOURCE}: ${cores} is on ${divisionOf(cores, { ...ANY_GPUS, gpus }).gpus} GPUs`,
    );
  if (cores === 0 || gpus === 1) return (cores === 0 ? null : checkCores(cores, shareMode)) ?? checkPair(request);
  const over = `annotation ${GPUS_KEY} is "${gpus}"`;
  if (cores > gpus * CORES_PER_GPU)
    return refuse('bad-core-count', `${over}, but ${CORE_RESOURCE}: ${cores} is more than ${gpus} whole GPUs`);
  for (const [resource, amount] of [
    [CORE_RESOURCE, cores],
    [MEMORY_RESOURCE, memoryBlocks],
  ] as const)
    if (amount % gpus !== 0)
      return refuse(
        'bad-core-count',
        `${over}, but ${resource}: ${amount} cannot be divided evenly over ${gpus} GPUs; ask for a multiple of ${gpus}`,
      );
  const { coresEach } = divisionOf(cores, { ...ANY_GPUS, gpus });
  return checkCores(coresEach, shareMode) ?? checkPair({ cores: coresEach, memoryBlocks });
}
