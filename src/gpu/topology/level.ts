/**
 * PCIe distance of two GPUs, nearest first. The names are the same as in current `nvidia-smi topo -m`; the numbers of
 * `NVML_VALUE` are `nvmlGpuTopologyLevel_t` of nvml.h. `X` is the distance of a GPU to itself.
 */
export type Level = 'X' | 'PIX' | 'PXB' | 'PHB' | 'NODE' | 'SYS';

/** Every level, nearest first. */
export const LEVELS: readonly Level[] = ['X', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'];

/** The value of `nvmlDeviceGetTopologyCommonAncestor` for each level. */
export const NVML_VALUE: Readonly<Record<Level, number>> = { X: 0, PIX: 10, PXB: 20, PHB: 30, NODE: 40, SYS: 50 };

/** In words, for reports to operators. */
export const LEVEL_MEANING: Readonly<Record<Level, string>> = {
  X: 'the same GPU',
  PIX: 'one PCIe bridge between them',
  PXB: 'several PCIe bridges, not the host bridge',
  PHB: 'the PCIe host bridge (the CPU)',
  NODE: 'the interconnect of host bridges of one NUMA node',
  SYS: 'the link between NUMA nodes',
};

/** True when `a` is nearer than `b`. */
export function nearer(a: Level, b: Level): boolean {
  return NVML_VALUE[a] < NVML_VALUE[b];
}

/**
 * The level between two different GPUs for a value of NVML's enum. Two GPUs of one board have the value 0 ("internal"):
 * they are behind the board's own bridge, which is PIX. Null for a value that NVML does not define.
 */
export function levelOfNvml(value: number): Level | null {
  if (value === NVML_VALUE.X) return 'PIX';
  return LEVELS.find((level) => NVML_VALUE[level] === value) ?? null;
}

/**
 * The level for a label of `nvidia-smi topo`; null for other labels (NVLink, affinity). `SOC` is the label of drivers
 * before 378 for `SYS`: the path crosses the link between sockets.
 */
export function levelOfLabel(label: string): Level | null {
  if (label === 'SOC') return 'SYS';
  return LEVELS.find((level) => level === label) ?? null;
}
