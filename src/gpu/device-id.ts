import type { Gpu } from './gpu.js';
import { CORES_PER_GPU, memoryBlocks, type ResourceKind } from './resources.js';

/**
 * Device ids carry the decision: each names its GPU, its kind and its number, such as `3f2a9c01-c17` (the 18th
 * core of the GPU whose UUID starts with 3f2a9c01) or `3f2a9c01-m4` (its fifth memory block). The kubelet keeps
 * them in its checkpoint, so they must stay the same after a restart, a re-enumeration and an update of the agent.
 */
export interface DeviceId {
  readonly gpuUuid: string;
  readonly kind: ResourceKind;
  readonly number: number;
}

const LETTER: Readonly<Record<ResourceKind, string>> = { core: 'c', memory: 'm' };
const ID_PATTERN = /^([0-9a-zA-Z]+)-([cm])(0|[1-9][0-9]{0,5})$/;
const SHORTEST_PREFIX = 8;
/** Ends the id of a whole instance: `3f2a9c01-whole` means `3f2a9c01-c0` to `3f2a9c01-c99`. */
const WHOLE = 'whole';

/** Encodes and decodes the ids of one node's GPUs. */
export class DeviceIds {
  readonly #prefixByUuid = new Map<string, string>();
  readonly #uuidByPrefix = new Map<string, string>();

  constructor(gpus: readonly Pick<Gpu, 'uuid'>[]) {
    for (const [uuid, prefix] of shortNames(gpus.map((gpu) => gpu.uuid))) {
      this.#prefixByUuid.set(uuid, prefix);
      this.#uuidByPrefix.set(prefix, uuid);
    }
  }

  /** Throws for a GPU that is not on this node. */
  encode(id: DeviceId): string {
    const prefix = this.#prefixByUuid.get(id.gpuUuid);
    if (prefix === undefined) throw new Error(`no GPU ${id.gpuUuid} on this node`);
    return `${prefix}-${LETTER[id.kind]}${id.number}`;
  }

  /** The id of a whole MIG instance, as the kubelet knows it; `coreIdsOfWhole` gives its cores. */
  encodeWhole(gpuUuid: string): string {
    return `${this.encode({ gpuUuid, kind: 'core', number: 0 }).slice(0, -2)}${WHOLE}`;
  }

  /** Null for text of another format, and for ids of a GPU that the node no longer has. */
  decode(text: string): DeviceId | null {
    const match = ID_PATTERN.exec(text);
    if (match === null) return null;
    const gpuUuid = this.#uuidByPrefix.get(match[1] ?? '');
    if (gpuUuid === undefined) return null;
    return { gpuUuid, kind: match[2] === 'c' ? 'core' : 'memory', number: Number(match[3]) };
  }

  /** Every id of one GPU and kind, in order of number; `factor`: how many times its capacity it offers. */
  all(gpu: Pick<Gpu, 'uuid' | 'memoryBytes'>, kind: ResourceKind, factor = 1): string[] {
    const count = factor * (kind === 'core' ? CORES_PER_GPU : memoryBlocks(gpu.memoryBytes));
    return Array.from({ length: count }, (_, number) => this.encode({ gpuUuid: gpu.uuid, kind, number }));
  }
}

/** The core ids that the id of a whole MIG instance represents; empty for another text. */
export function coreIdsOfWhole(id: string): string[] {
  if (!id.endsWith(`-${WHOLE}`)) return [];
  const prefix = id.slice(0, -WHOLE.length);
  return Array.from({ length: CORES_PER_GPU }, (_, number) => `${prefix}${LETTER.core}${number}`);
}

/** The first 8 digits of each UUID; if these are equal for several GPUs, the first 12, 16, ... of them. */
function shortNames(uuids: readonly string[]): Map<string, string> {
  const names = new Map<string, string>();
  const digits = (uuid: string): string => uuid.replace(/^(?:GPU|MIG)-/, '').replace(/[^0-9a-zA-Z]/g, '');
  let alike: readonly string[] = uuids;
  for (let length = SHORTEST_PREFIX; alike.length > 0; length += 4) {
    const byPrefix = new Map<string, string[]>();
    for (const uuid of alike) {
      const prefix = digits(uuid).slice(0, length);
      byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), uuid]);
    }
    alike = [];
    for (const [prefix, group] of byPrefix) {
      const exhausted = group.every((uuid) => digits(uuid).length <= length);
      if (group.length > 1 && exhausted) throw new Error(`two GPUs have the same UUID: ${group.join(', ')}`);
      if (group.length > 1) alike = [...alike, ...group];
      else for (const uuid of group) names.set(uuid, prefix);
    }
  }
  return names;
}

/** Ids as ranges of their last number by prefix: `3f2a9c01-c0`, ... become `{ '3f2a9c01-c': '0-29,40' }`. */
export type CompactIds = Readonly<Record<string, string>>;

const TRAILING_NUMBER = /^(.*?)(0|[1-9][0-9]{0,8})$/;

/** Writes ids as ranges, for checkpoint and log. An id without a trailing number becomes a separate entry. */
export function compactIds(ids: Iterable<string>): CompactIds {
  const numbers = new Map<string, number[]>();
  const compact: Record<string, string> = {};
  for (const id of ids) {
    const match = TRAILING_NUMBER.exec(id);
    if (match === null) {
      compact[id] = '';
      continue;
    }
    const prefix = match[1] ?? '';
    const list = numbers.get(prefix);
    if (list === undefined) numbers.set(prefix, [Number(match[2])]);
    else list.push(Number(match[2]));
  }
  for (const [prefix, list] of numbers) compact[prefix] = ranges(list);
  return compact;
}

/** The inverse of compactIds, in order of prefix and number. Throws on text that compactIds does not write. */
export function expandIds(compact: CompactIds): string[] {
  return Object.entries(compact).flatMap(([prefix, text]) => {
    if (text === '') return [prefix];
    return text.split(',').flatMap((range) => {
      const match = /^([0-9]+)(?:-([0-9]+))?$/.exec(range);
      const first = Number(match?.[1]);
      const last = match?.[2] === undefined ? first : Number(match[2]);
      if (match === null || last < first || last - first > 1_000_000)
        throw new Error(`not a range of device ids: ${prefix}${range}`);
      return Array.from({ length: last - first + 1 }, (_, offset) => `${prefix}${first + offset}`);
    });
  });
}

function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  let start = 0;
  for (let at = 1; at <= sorted.length; at += 1) {
    const previous = sorted[at - 1] ?? 0;
    if (at < sorted.length && sorted[at] === previous + 1) continue;
    const first = sorted[start] ?? 0;
    parts.push(first === previous ? `${first}` : `${first}-${previous}`);
    start = at;
  }
  return parts.join(',');
}
