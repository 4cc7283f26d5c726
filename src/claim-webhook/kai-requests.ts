/**
 * What pods ask of KAI and Run:ai by annotations: shares by container (`nvidia.com/container.NAME.gpu-memory.request`),
 * and a fraction or an amount of memory for one container (`gpu-fraction`, `gpu-memory`). Pure.
 */
import { MEMORY_BLOCK_BYTES } from '../gpu/resources.js';
import type { Pod } from '../kube/pod.js';
import { wholeQuantity } from '../manifests/quantity.js';
import type { MemoryAmount } from './gpu-share.js';

/** What one container asks for on each of its GPUs. */
export interface KaiRequest {
  readonly gpus: number;
  /** Cores; null: it has no limit of compute. */
  readonly cores: number | null;
  /** It may use more than its cores while others leave the GPU idle. */
  readonly isSoft: boolean;
  /** Its cores are a portion of the multiprocessors. */
  readonly sharesSms: boolean;
  readonly memory: MemoryAmount;
  /** Bytes that it may have while its GPU has room; null: no more than `memory`. */
  readonly mostBytes: number | null;
  /** What differs here. */
  readonly notes: readonly string[];
}

export type KaiRequests =
  | { readonly ok: true; readonly of: ReadonlyMap<string, KaiRequest>; readonly keys: ReadonlySet<string> }
  | { readonly ok: false; readonly reason: string };

const BY_CONTAINER = /^nvidia\.com\/container\.(.+)\.(gpu-(?:memory\.(?:request|limit)|compute\.(?:mode|portion)))$/u;
const FRACTION = 'gpu-fraction';
const MEMORY = 'gpu-memory';
const COUNT = 'gpu-fraction-num-devices';
const CONTAINER = 'gpu-fraction-container-name';
/** A CEL expression that is true for an object that has such annotations. */
export const ASKS_KAI = `has(object.metadata.annotations) && object.metadata.annotations.exists(key, key.matches('^(gpu-fraction|gpu-memory|nvidia[.]com/container[.].+[.]gpu-(memory|compute)[.].+)$'))`;

const MIB = 2 ** 20;
const MODES = ['time-slicing', 'sm-sharing'];

class Refusal extends Error {}

/** The requests of a pod by container, and the annotations that make them. */
export function readKaiRequests(pod: Pick<Pod, 'annotations' | 'containers' | 'initContainers'>): KaiRequests {
  const { annotations, containers, initContainers } = pod;
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  const fields = new Map<string, Map<string, string>>();
  const keys = new Set<string>();
  try {
    for (const [key, value] of Object.entries(annotations)) {
      const [, name, field] = BY_CONTAINER.exec(key) ?? [];
      if (name === undefined || field === undefined) continue;
      if (!names.has(name)) throw new Refusal(`annotation ${key}: the pod has no container ${name}`);
      keys.add(key);
      fields.set(name, (fields.get(name) ?? new Map<string, string>()).set(field, value.trim()));
    }
    const requests = new Map([...fields].map(([name, own]) => [name, byContainer(name, own)] as const));
    if (FRACTION in annotations || MEMORY in annotations) {
      const name = annotations[CONTAINER] ?? containers[0]?.name ?? '';
      if (!names.has(name)) throw new Refusal(`annotation ${CONTAINER}: the pod has no container ${name}`);
      if (requests.has(name)) throw new Refusal(`container ${name} asks for a share of a GPU in two ways`);
      requests.set(name, ofPod(annotations));
      for (const key of [FRACTION, MEMORY, COUNT, CONTAINER]) if (key in annotations) keys.add(key);
    }
    return { ok: true, of: requests, keys };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message };
    throw error;
  }
}

function byContainer(name: string, fields: ReadonlyMap<string, string>): KaiRequest {
  const keyOf = (field: string): string => `nvidia.com/container.${name}.${field}`;
  const bytes = (field: string): number | null => {
    const text = fields.get(field);
    return text === undefined ? null : bytesIn(keyOf(field), text);
  };
  const [asked, most] = [bytes('gpu-memory.request'), bytes('gpu-memory.limit')];
  const request = asked ?? most;
  if (request === null) throw new Refusal(`container ${name} has no ${keyOf('gpu-memory.request')}`);
  if (most !== null && most < request)
    throw new Refusal(`annotation ${keyOf('gpu-memory.limit')} is below the request`);
  const portion = fields.get('gpu-compute.portion');
  const mode = fields.get('gpu-compute.mode') ?? (portion === undefined ? 'time-slicing' : 'sm-sharing');
  if (!MODES.includes(mode))
    throw new Refusal(
      `annotation ${keyOf('gpu-compute.mode')} is ${JSON.stringify(mode)}; expected ${MODES.join(' or ')}`,
    );
  const cores =
    mode === 'sm-sharing' && portion !== undefined ? coresIn(keyOf('gpu-compute.portion'), portion, 1) : null;
  return {
    gpus: 1,
    cores,
    isSoft: false,
    sharesSms: cores !== null,
    memory: { bytes: request },
    mostBytes: most !== null && most > request ? most : null,
    notes: [
      ...(most !== null && most > request
        ? [
            `it may have ${Math.ceil(most / MEMORY_BLOCK_BYTES)} blocks while its GPU has room, on nodes with --allow-resize`,
          ]
        : []),
    ],
  };
}

function ofPod(annotations: Readonly<Record<string, string>>): KaiRequest {
  const [fraction, memory] = [annotations[FRACTION]?.trim(), annotations[MEMORY]?.trim()];
  if (fraction !== undefined && memory !== undefined)
    throw new Refusal(`annotations ${FRACTION} and ${MEMORY} exclude each other`);
  const count = (annotations[COUNT] ?? '1').trim();
  if (!/^[1-9]\d?$/u.test(count))
    throw new Refusal(`annotation ${COUNT} is ${JSON.stringify(count)}; expected a number of GPUs`);
  const shared = { gpus: Number(count), sharesSms: false, mostBytes: null, notes: [] };
  if (fraction === undefined)
    return { ...shared, cores: null, isSoft: false, memory: { bytes: bytesIn(MEMORY, memory ?? '') } };
  const cores = coresIn(FRACTION, fraction, 0.99);
  return { ...shared, cores, isSoft: true, memory: { percent: Number(fraction) * 100 } };
}

/** A plain number is MiB, as in the variables of NVIDIA's container toolkit. */
function bytesIn(key: string, text: string): number {
  const bytes = /^\d+$/u.test(text) ? Number(text) * MIB : wholeQuantity(text);
  if (bytes === null || !(bytes > 0) || !Number.isSafeInteger(bytes))
    throw new Refusal(`annotation ${key} is ${JSON.stringify(text)}; expected an amount such as 4Gi, or MiB`);
  return bytes;
}

function coresIn(key: string, text: string, most: number): number {
  const portion = /^(?:\d+(?:\.\d+)?|\.\d+)$/u.test(text) ? Number(text) : 0;
  if (!(portion > 0) || portion > most)
    throw new Refusal(`annotation ${key} is ${JSON.stringify(text)}; expected a number above 0 and up to ${most}`);
  return Math.max(1, Math.ceil(Number((portion * 100).toFixed(6))));
}
