import { MAX_DEVICES } from '../abi/vgpu-abi.js';
import {
  COMPUTE_KEY,
  CORE_LIMIT_KEY,
  EXCLUDED_MODELS_KEY,
  EXCLUDED_UUIDS_KEY,
  GPU_POLICY_KEY,
  GPUS_KEY,
  MODELS_KEY,
  NODE_POLICY_KEY,
  PRIORITY_KEY,
  UUIDS_KEY,
} from '../gpu/annotations.js';
import {
  FOREIGN_RESOURCES,
  HAMI_CORES,
  HAMI_MEMORY,
  HAMI_MEMORY_PERCENTAGE,
  HAMI_PRIORITY,
  NVIDIA_GPU,
} from '../gpu/foreign-requests.js';
import { divisionOf, isDivided } from '../gpu/division.js';
import { readSelection, selectionFor } from '../gpu/gpu-selection.js';
import { CORE_RESOURCE, CORES_PER_GPU, MEMORY_BLOCK_BYTES, MEMORY_RESOURCE } from '../gpu/resources.js';
import { annotationProblem } from '../kube/annotation-problem.js';
import { list, record, text, type JsonRecord } from '../kube/json.js';
import { readPod, type PodContainer } from '../kube/pod.js';
import { gpuRequestOf } from '../kube/pod-gpus.js';
import { MEMORY_RESIZE_KEY } from '../manifests/gpu-resize.js';
import { wholeQuantity } from '../manifests/quantity.js';
import type { GpuShare, MemoryAmount } from './gpu-share.js';
import { readKaiRequests, type KaiRequest } from './kai-requests.js';

/** One operation of a JSON patch. */
export interface PatchStep {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

/** What becomes of a pod that asks other projects for GPUs. */
export type ForeignConversion =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly reason: string }
  | {
      readonly kind: 'converted';
      readonly patch: readonly PatchStep[];
      /** What differs from the original request, and what has no equal. */
      readonly notes: readonly string[];
    };

export interface ForeignOptions {
  /** What one `nvidia.com/gpu` stands for; null: such requests stay. Requests with amounts of HAMi need no share. */
  readonly share: GpuShare | null;
  /** Memory of a GPU, for amounts in percent; null if it is not known. */
  readonly gpuMemoryBytes: number | null;
}

/** Cores of a container that HAMi limits in memory only; it may use more while other containers leave the GPU idle. */
const CORES_WITHOUT_LIMIT = 10;

/** Schedulers of other projects, which would not know the converted request. */
const SCHEDULERS: readonly string[] = ['hami-scheduler', 'kai-scheduler', 'runai-scheduler'];
/** Labels by which KAI and Run:ai find the queue of a pod. */
const QUEUE_LABELS: readonly string[] = ['kai.scheduler/queue', 'runai/queue'];
const MEBIBYTE = 2 ** 20;

const HAMI_GPU_POLICY = 'hami.io/gpu-scheduler-policy';
/** Annotations of HAMi whose values mean the same under a key of ours. */
const EQUALS: Readonly<Record<string, string>> = {
  'nvidia.com/use-gputype': MODELS_KEY,
  'nvidia.com/nouse-gputype': EXCLUDED_MODELS_KEY,
  'nvidia.com/use-gpuuuid': UUIDS_KEY,
  'nvidia.com/nouse-gpuuuid': EXCLUDED_UUIDS_KEY,
  [HAMI_GPU_POLICY]: GPU_POLICY_KEY,
  'hami.io/node-scheduler-policy': NODE_POLICY_KEY,
};

const POLICIES = [GPU_POLICY_KEY, NODE_POLICY_KEY];
/** HAMi gives each container GPUs that no other container uses. */
const EXCLUSIVE = 'mutex';

/** Other annotations of HAMi have no equal. */
const OF_HAMI = /^(?:nvidia\.com\/(?:vgpu-|numa-bind)|hami\.io\/)/u;
/** Environment variables by which HAMi's library is told limits and behaviour; ours reads none of them. */
const ENVIRONMENT_OF_HAMI =
  /^(?:CUDA_DEVICE_(?:MEMORY_LIMIT|SM_LIMIT)|CUDA_(?:OVERSUBSCRIBE|TASK_PRIORITY|DISABLE_CONTROL)|GPU_CORE_UTILIZATION_POLICY|ACTIVE_OOM_KILLER)/u;

/**
 * Converts requests for `nvidia.com/gpu`, and shares of HAMi, KAI and Run:ai, into the two extended resources. The pod
 * may be a template: paths of the patch begin at its `metadata` and `spec`.
 */
export function convertForeign(object: unknown, options: ForeignOptions): ForeignConversion {
  const pod = readPod(object);
  const annotations = equalAnnotations(pod.annotations);
  const isExclusive = pod.annotations[HAMI_GPU_POLICY]?.trim() === EXCLUSIVE;
  const { spec: rawSpec, metadata } = record(object);
  const spec = record(rawSpec);
  const patch: PatchStep[] = [];
  const notes: string[] = [];
  const unlimited: string[] = [];
  const priorities = new Set<string>();
  /** How many GPUs each container gets. */
  const counts = new Map<string, number>();
  let areDivided = false;
  const kai = readKaiRequests(pod);
  if (!kai.ok) return { kind: 'refused', reason: kai.reason };
  const resizes: string[] = [];
  /** For each container with amounts, whether these are a portion of multiprocessors. */
  const sharesSms = new Set<boolean>();
  for (const where of ['initContainers', 'containers'] as const)
    for (const [index, container] of pod[where].entries()) {
      const request = kai.of.get(container.name);
      const amounts = amountsOf(container, options, { isExclusive, request });
      if (amounts === null) {
        const { cores, memoryBlocks } = gpuRequestOf(container);
        if (cores + memoryBlocks > 0) counts.set(container.name, divisionOf(cores).gpus);
        continue;
      }
      if (!amounts.ok) return { kind: 'refused', reason: `container ${container.name}: ${amounts.reason}` };
      const { cores, memoryBlocks, note } = amounts;
      counts.set(container.name, amounts.gpus);
      areDivided ||= isDivided({ gpus: amounts.gpus, coresEach: cores / amounts.gpus });
      if (amounts.isUnlimited) unlimited.push(container.name);
      for (const one of [note, ...(request?.notes ?? [])])
        if (one !== '') notes.push(`container ${container.name}: ${one}`);
      sharesSms.add(request?.sharesSms === true);
      if (typeof request?.mostBytes === 'number')
        resizes.push(`${container.name}=${Math.ceil(request.mostBytes / MEMORY_BLOCK_BYTES)}`);
      for (const name of Object.keys(container.env))
        if (ENVIRONMENT_OF_HAMI.test(name))
          notes.push(`container ${container.name}: the environment variable ${name} has no equal`);
      const resources = record(record(list(spec[where])[index]).resources);
      const priority = record(resources.limits)[HAMI_PRIORITY] ?? record(resources.requests)[HAMI_PRIORITY];
      if (priority !== undefined) priorities.add(Number(priority) === 0 ? 'high' : 'low');
      patch.push({
        op: record(list(spec[where])[index]).resources === undefined ? 'add' : 'replace',
        path: `/spec/${where}/${index}/resources`,
        value: withAmounts(resources, {
          [CORE_RESOURCE]: cores,
          ...(memoryBlocks === 0 ? {} : { [MEMORY_RESOURCE]: memoryBlocks }),
        }),
      });
    }
  if (patch.length === 0) return { kind: 'unchanged' };
  if (!annotations.ok) return { kind: 'refused', reason: annotations.reason };
  notes.push(...annotations.notes);
  const own = readSelection((key) => (key === GPUS_KEY ? pod.annotations[key] : undefined));
  if (areDivided && own.ok && GPUS_KEY in pod.annotations)
    for (const [name, count] of counts)
      if (selectionFor(own.selection, name).gpus !== count)
        return {
          kind: 'refused',
          reason: `container ${name} gets ${count} GPUs; the annotation ${GPUS_KEY} says ${pod.annotations[GPUS_KEY]}`,
        };
  const [gpus = 1, otherCount] = new Set(counts.values());
  const divided =
    otherCount === undefined ? String(gpus) : [...counts].map(([name, count]) => `${name}=${count}`).join(',');
  const [priority, another] = priorities;
  if (another !== undefined)
    notes.push(`its containers have several values of ${HAMI_PRIORITY}; a pod has one priority`);
  const isInSms = sharesSms.has(true) && !sharesSms.has(false);
  if (isInSms) notes.push(`annotation ${COMPUTE_KEY}: sm needs a node with --sm-gpus; remove it for shares of time`);
  else if (sharesSms.has(true)) notes.push('portions of multiprocessors become shares of time: a pod has one of both');
  const limits = unlimited.map((name) => `${name}=${CORES_PER_GPU}`).join(',');
  const added = {
    ...annotations.ours,
    ...(areDivided ? { [GPUS_KEY]: divided } : {}),
    ...(isInSms ? { [COMPUTE_KEY]: 'sm' } : {}),
    ...(limits === '' ? {} : { [CORE_LIMIT_KEY]: limits }),
    ...(resizes.length === 0 ? {} : { [MEMORY_RESIZE_KEY]: resizes.join(',') }),
    ...(priority === undefined || another !== undefined ? {} : { [PRIORITY_KEY]: priority }),
  };
  const problem = annotationProblem({ ...pod, annotations: { ...added, ...pod.annotations } });
  if (problem !== null) return { kind: 'refused', reason: problem };
  if (Object.keys(added).length + kai.keys.size > 0) {
    if (metadata === undefined) patch.push({ op: 'add', path: '/metadata', value: {} });
    // Those of KAI go: a pod that still had them would ask in two ways.
    const kept = Object.entries(pod.annotations).filter(([key]) => !kai.keys.has(key));
    patch.push({ op: 'add', path: '/metadata/annotations', value: { ...added, ...Object.fromEntries(kept) } });
  }
  for (const label of QUEUE_LABELS) if (label in pod.labels) notes.push(`label ${label} has no equal`);
  if (SCHEDULERS.includes(text(spec.schedulerName))) patch.push({ op: 'remove', path: '/spec/schedulerName' });
  for (const key of Object.keys(pod.annotations))
    if (OF_HAMI.test(key) && !(key in EQUALS)) notes.push(`annotation ${key} has no equal`);
  return { kind: 'converted', patch, notes };
}

type EqualAnnotations =
  | {
      readonly ok: true;
      readonly ours: Readonly<Record<string, string>>;
      readonly notes: readonly string[];
    }
  | { readonly ok: false; readonly reason: string };

/**
 * HAMi's annotations under our keys, each as far as the extender and the agent read its value. A preference that they
 * lack is left out with a note; a restriction that they cannot keep refuses the pod.
 */
function equalAnnotations(annotations: Readonly<Record<string, string>>): EqualAnnotations {
  const ours: Record<string, string> = {};
  const notes: string[] = [];
  for (const [key, own] of Object.entries(EQUALS)) {
    const value = annotations[key]?.trim() ?? '';
    if (value === '' || (key === HAMI_GPU_POLICY && value === EXCLUSIVE)) continue;
    const read = readSelection((name) => (name === own ? value : undefined));
    if (read.ok) ours[own] = value;
    else if (POLICIES.includes(own)) notes.push(`annotation ${key}: ${JSON.stringify(value)} has no equal`);
    else return { ok: false, reason: `annotation ${key}, as ours: ${read.reason}` };
  }
  return { ok: true, ours, notes };
}

type Amounts =
  | {
      readonly ok: true;
      readonly cores: number;
      readonly memoryBlocks: number;
      readonly gpus: number;
      readonly note: string;
      readonly isUnlimited: boolean;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * The amounts of a container; null for one that asks for nothing that is converted. Exclusive: whole GPUs. `request`:
 * what it asks of KAI or Run:ai.
 */
function amountsOf(
  { extended }: PodContainer,
  { share, gpuMemoryBytes }: ForeignOptions,
  { isExclusive, request }: { readonly isExclusive: boolean; readonly request: KaiRequest | undefined },
): Amounts | null {
  const [gpus, mebibytes, percent, percentOfCores] = [NVIDIA_GPU, HAMI_MEMORY, HAMI_MEMORY_PERCENTAGE, HAMI_CORES].map(
    (name) => wholeQuantity(extended(name)),
  );
  if ([gpus, mebibytes, percent, percentOfCores].some((amount) => amount === null || amount === undefined))
    return { ok: false, reason: `the amounts of ${FOREIGN_RESOURCES.join(', ')} must be whole` };
  const isHami = Number(mebibytes) > 0 || Number(percent) > 0 || Number(percentOfCores) > 0;
  if (!isHami && request === undefined && (Number(gpus) === 0 || share === null)) return null;
  if (isHami && request !== undefined) return { ok: false, reason: 'it asks for a share of a GPU in two ways' };
  if (Number(extended(CORE_RESOURCE)) > 0)
    return { ok: false, reason: `it asks for ${CORE_RESOURCE} and for GPUs of another project` };
  if (request !== undefined) return amountsOn(request.gpus, request, gpuMemoryBytes);
  const count = Math.max(1, Number(gpus));
  const asked: { readonly cores: number | null; readonly memory: MemoryAmount } =
    isHami || share === null
      ? {
          cores: Number(percentOfCores) || null,
          memory: Number(mebibytes) > 0 ? { bytes: Number(mebibytes) * MEBIBYTE } : { percent: Number(percent) || 100 },
        }
      : share;
  if (isExclusive)
    return amounts(count, CORES_PER_GPU, 0, `${HAMI_GPU_POLICY}: ${EXCLUSIVE} gives it whole GPUs`, false);
  return amountsOn(count, asked, gpuMemoryBytes);
}

/** The amounts of a container with a share of each of `count` GPUs. */
function amountsOn(
  count: number,
  asked: { readonly cores: number | null; readonly isSoft?: boolean; readonly memory: MemoryAmount },
  gpuMemoryBytes: number | null,
): Amounts {
  const { memory } = asked;
  const cores = asked.cores ?? CORES_WITHOUT_LIMIT;
  const isWhole = cores === CORES_PER_GPU;
  if (cores > CORES_PER_GPU || ('percent' in memory && memory.percent > 100))
    return { ok: false, reason: 'a percentage is more than 100' };
  if (count > MAX_DEVICES && !isWhole)
    return { ok: false, reason: `parts of ${count} GPUs in one container; at most ${MAX_DEVICES} are supported` };
  if (isWhole && 'percent' in memory && memory.percent === 100) return amounts(count, cores, 0, '', false);
  if ('percent' in memory && gpuMemoryBytes === null)
    return {
      ok: false,
      reason: `its memory is ${memory.percent} % of a GPU, whose size is not known; give --gpu-memory, such as 80GiB`,
    };
  const bytes = 'percent' in memory ? ((gpuMemoryBytes ?? 0) * memory.percent) / 100 : memory.bytes;
  // Rounded up as a request, but never beyond the GPU.
  const blocks =
    'percent' in memory && memory.percent === 100
      ? Math.floor(bytes / MEMORY_BLOCK_BYTES)
      : Math.ceil(bytes / MEMORY_BLOCK_BYTES);
  const rounded = (blocks * MEMORY_BLOCK_BYTES) / MEBIBYTE;
  const notes = [
    ...(asked.cores === null
      ? [`its compute has no limit; it gets ${cores} cores, and up to ${CORES_PER_GPU} while the GPU is idle`]
      : []),
    ...(asked.isSoft === true
      ? [`its compute becomes ${cores} cores, and up to ${CORES_PER_GPU} while the GPU is idle`]
      : []),
    ...('bytes' in memory && blocks * MEMORY_BLOCK_BYTES !== bytes
      ? [`${bytes / MEBIBYTE} MiB become ${blocks} blocks of 256 MiB, ${rounded} MiB`]
      : []),
  ];
  return amounts(count, cores, blocks, notes.join('; '), asked.cores === null || asked.isSoft === true);
}

/** The amounts of a container, from those of each of its GPUs. */
function amounts(gpus: number, coresEach: number, blocksEach: number, note: string, isUnlimited: boolean): Amounts {
  return { ok: true, cores: gpus * coresEach, memoryBlocks: gpus * blocksEach, gpus, note, isUnlimited };
}

function withAmounts(resources: JsonRecord, added: Readonly<Record<string, number>>): object {
  const side = (name: 'limits' | 'requests'): object => {
    const rest = Object.entries(record(resources[name])).filter(
      ([resource]) => resource !== HAMI_PRIORITY && !FOREIGN_RESOURCES.includes(resource),
    );
    return Object.fromEntries([...rest, ...Object.entries(added)]);
  };
  const requests = resources.requests === undefined ? {} : { requests: side('requests') };
  return { ...resources, limits: side('limits'), ...requests };
}
