import { amountOf, plus, times, type Amount } from './amount.js';

/** Amounts by resource in base units. */
export type Amounts = Map<string, Amount>;

/** Memory of GPUs by type, in bytes: `A30` has 24 GiB. */
export type CardCatalog = Readonly<Record<string, number>>;

/** The GPU type of an object; empty for none. */
export interface GpuOfType {
  readonly type: string;
  readonly catalog: CardCatalog;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** GPU models with a unique memory size. Configure other models in the policy. */
export const DEFAULT_CATALOG: CardCatalog = {
  P4: 8 * GIB,
  T4: 16 * GIB,
  A2: 16 * GIB,
  A10: 24 * GIB,
  A30: 24 * GIB,
  A40: 48 * GIB,
  L4: 24 * GIB,
  L40: 48 * GIB,
  L40S: 48 * GIB,
  H200: 141 * GIB,
};

/** Value of one GPU in `gpu.cards`, in thousandths. */
const CARD = 1000;
export const VCUDA_CORE = 'tencent.com/vcuda-core';
export const VCUDA_MEMORY = 'tencent.com/vcuda-memory';
/** Whole GPUs through claims that the scheduler makes: charged like a claim, by the keys of the device plugin. */
const WHOLE_GPU = 'tencent.com/gpu';
/** Cores of one GPU in tkestack's vcuda. */
export const VCUDA_CORES_PER_GPU = 100;
/** Size of a memory block of tkestack's vcuda. */
export const VCUDA_BLOCK_BYTES = 256 * MIB;
/** MIG slices of a whole GPU. */
const MIG_SLICES = 7;

/** The resource that names the GPUs of a request: `tencent.com/vcuda-core` for its memory too; null for another. */
export function gpuResourceOf(resource: string): string | null {
  if (resource === WHOLE_GPU || resource.startsWith('tencent.com/vcuda-')) return VCUDA_CORE;
  if (resource.startsWith('nvidia.com/vgpu-')) return 'nvidia.com/vgpu-number';
  if (resource.startsWith('nvidia.com/mig-')) return resource;
  return /^nvidia\.com\/gpu(?:cores|mem|mem-percentage)?$/.test(resource) ? 'nvidia.com/gpu' : null;
}

/** The GPU request of a container, independent of the vendor's resource names. */
export interface DerivedGpu {
  /**
   * The container's amounts, with amounts per device multiplied by the number of devices, plus `gpu.cards` and
   * `gpu.memory`.
   */
  readonly amounts: Amounts;
  /** True if the container requests whole GPUs of a type that the catalog does not have. */
  readonly isMemoryUnknown: boolean;
}

/**
 * Derives comparable GPU amounts of one container. NVIDIA's plugin counts GPUs. HAMi (`gpucores`, `gpumem`) and
 * vgpu-manager (`vgpu-cores`, `vgpu-memory`) give amounts per device, which are multiplied here. tkestack's vcuda
 * counts hundredths of a GPU and blocks of 256 MiB in total, to which whole GPUs of `tencent.com/gpu` add. MIG
 * resources name slices of seven and GB. Call this before multiplying by replicas.
 */
export function deriveGpu(asked: ReadonlyMap<string, Amount>, type: string, catalog: CardCatalog): DerivedGpu {
  const amounts: Amounts = new Map(asked);
  const cardBytes = Object.hasOwn(catalog, type) ? (catalog[type] as number) : null;
  let cards: Amount = 0;
  let memory: Amount = 0;
  let isMemoryUnknown = false;
  const wholeCards = (count: Amount, percent: Amount): void => {
    if (cardBytes === null) isMemoryUnknown = true;
    else memory = plus(memory, hundredths(times(times(count, cardBytes), percent)));
  };
  const shared = (devices: string, coresName: string, memoryName: string, percentName: string | null): void => {
    const count = asked.get(devices);
    if (count === undefined || count <= 0) return;
    const cores = asked.get(coresName);
    const each = asked.get(memoryName);
    const percent = percentName === null ? undefined : asked.get(percentName);
    if (cores !== undefined) amounts.set(coresName, times(count, cores));
    if (each !== undefined) amounts.set(memoryName, times(count, each));
    cards = plus(
      cards,
      cores === undefined ? times(count, CARD) : times(times(count, cores), CARD / VCUDA_CORES_PER_GPU),
    );
    if (each !== undefined) memory = plus(memory, times(times(count, each), MIB));
    else wholeCards(count, percent ?? 100);
  };
  shared('nvidia.com/gpu', 'nvidia.com/gpucores', 'nvidia.com/gpumem', 'nvidia.com/gpumem-percentage');
  shared('nvidia.com/vgpu-number', 'nvidia.com/vgpu-cores', 'nvidia.com/vgpu-memory', null);
  const whole = asked.get(WHOLE_GPU) ?? 0;
  if (whole > 0) {
    amounts.set(VCUDA_CORE, plus(asked.get(VCUDA_CORE) ?? 0, times(whole, VCUDA_CORES_PER_GPU)));
    if (cardBytes === null) isMemoryUnknown = true;
    else {
      const blocks = Math.floor(cardBytes / VCUDA_BLOCK_BYTES);
      amounts.set(VCUDA_MEMORY, plus(asked.get(VCUDA_MEMORY) ?? 0, times(whole, blocks)));
    }
  }
  cards = plus(cards, times(amounts.get(VCUDA_CORE) ?? 0, CARD / VCUDA_CORES_PER_GPU));
  memory = plus(memory, times(amounts.get(VCUDA_MEMORY) ?? 0, VCUDA_BLOCK_BYTES));
  for (const [resource, count] of asked) {
    const [, slices, gib] = /^nvidia\.com\/mig-(?:\d+c\.)?(\d+)g\.(\d+)gb/.exec(resource) ?? [];
    if (slices === undefined || gib === undefined) continue;
    cards = plus(cards, roundedUp(times(times(count, Number(slices)), CARD), MIG_SLICES));
    memory = plus(memory, times(times(count, Number(gib)), GIB));
  }
  if (cards > 0) amounts.set('gpu.cards', cards);
  if (memory > 0) amounts.set('gpu.memory', memory);
  return { amounts, isMemoryUnknown };
}

function hundredths(amount: Amount): Amount {
  return roundedUp(amount, 100);
}

function roundedUp(amount: Amount, by: number): Amount {
  const value = BigInt(amount);
  return amountOf((value + BigInt(by) - 1n) / BigInt(by));
}
