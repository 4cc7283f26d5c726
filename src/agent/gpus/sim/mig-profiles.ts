import type { GpuDetails } from '../driver.js';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** MIG divides the memory of a GPU into this number of slices. */
const MEMORY_SLICES = 8;

interface Profile {
  readonly name: string;
  readonly computeSlices: number;
  readonly memorySlices: number;
  readonly memoryMib: number;
  readonly multiprocessors: number;
}

/** Names of the profiles of a model in NVIDIA's order: 1g, 1g with the memory of two, 2g, 3g, 4g, 7g. */
function profiles(names: string, memoryMib: readonly number[], multiprocessors: readonly number[]): readonly Profile[] {
  const sizes = [
    [1, 1],
    [1, 2],
    [2, 2],
    [3, 4],
    [4, 4],
    [7, 8],
  ] as const;
  return names.split(' ').map((name, at) => ({
    name,
    computeSlices: sizes[at]?.[0] ?? 0,
    memorySlices: sizes[at]?.[1] ?? 0,
    memoryMib: memoryMib[at] ?? 0,
    multiprocessors: multiprocessors[at] ?? 0,
  }));
}

/** The output of `nvidia-smi mig -lgip`; native/sim/mig.c has the same tables and names their source. */
const MODELS = [
  {
    pattern: /A100/u,
    gib: [39, 41],
    profiles: profiles(
      '1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb',
      [4864, 9984, 9984, 20096, 20096, 40448],
      [14, 14, 28, 42, 56, 98],
    ),
  },
  {
    pattern: /A100/u,
    gib: [78, 81],
    profiles: profiles(
      '1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb',
      [9728, 19968, 19968, 40192, 40192, 80640],
      [14, 14, 28, 42, 56, 98],
    ),
  },
  {
    pattern: /H100/u,
    gib: [78, 81],
    profiles: profiles(
      '1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb',
      [9984, 20096, 20096, 40448, 40448, 81152],
      [16, 26, 32, 60, 64, 132],
    ),
  },
  {
    pattern: /H200/u,
    gib: [138, 142],
    profiles: profiles(
      '1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb',
      [16384, 33024, 33024, 71168, 71168, 143104],
      [16, 26, 32, 60, 64, 132],
    ),
  },
] as const;

/**
 * Divides a GPU into instances of these profiles. If the profiles do not fit, returns a text about the expected
 * input. `index` is the index of the first instance.
 */
export function divideGpu(gpu: GpuDetails, names: readonly string[], index: number): readonly GpuDetails[] | string {
  const known = MODELS.find(
    ({ pattern, gib: [least, most] }) =>
      pattern.test(gpu.model) && gpu.memoryBytes >= least * GIB && gpu.memoryBytes <= most * GIB,
  );
  if (known === undefined) return 'an A100 of 40 or 80 GB, an H100 of 80 GB or an H200, by model and memoryMiB';
  const chosen = names.map((name) => known.profiles.find((profile) => profile.name === name));
  const complete = chosen.filter((profile) => profile !== undefined);
  if (complete.length < chosen.length) return `profiles of ${known.profiles.map(({ name }) => name).join(', ')}`;
  const starts = fit(complete, 0);
  if (starts === null) return 'instances that fit beside each other on the GPU';
  return complete.map((profile, at) => instanceOf(gpu, profile, starts[at] ?? 0, index + at));
}

/** Start of each profile among the memory slices; the first arrangement that fits, or null. */
function fit([profile, ...others]: readonly Profile[], taken: number): readonly number[] | null {
  if (profile === undefined) return [];
  for (let start = 0; start < MEMORY_SLICES; start++) {
    const slices = ((1 << profile.memorySlices) - 1) << start;
    if (!mayStart(profile, start) || (taken & slices) !== 0) continue;
    const rest = fit(others, taken | slices);
    if (rest !== null) return [start, ...rest];
  }
  return null;
}

function mayStart({ computeSlices, memorySlices }: Profile, start: number): boolean {
  if (memorySlices === 1) return start < MEMORY_SLICES - 1;
  if (computeSlices === 4 || memorySlices === MEMORY_SLICES) return start === 0;
  if (computeSlices === 2) return start % 2 === 0 && start <= 4;
  return start % memorySlices === 0;
}

/** The driver numbers GPU instances by size and position. */
const FIRST_ID: Readonly<Record<number, number>> = { 1: 7, 2: 3, 4: 1, 8: 0 };

function instanceOf(gpu: GpuDetails, profile: Profile, start: number, index: number): GpuDetails {
  const gpuInstance = (FIRST_ID[profile.memorySlices] ?? 0) + Math.floor(start / profile.memorySlices);
  return {
    ...gpu,
    index,
    uuid: instanceUuid(gpu.uuid, gpuInstance),
    model: `${gpu.model} MIG ${profile.name}`,
    memoryBytes: profile.memoryMib * MIB,
    mig: null,
    instance: {
      profile: profile.name,
      parentUuid: gpu.uuid,
      gpuInstance,
      computeInstance: 0,
      multiprocessors: profile.multiprocessors,
    },
  };
}

/** The first group of digits differs from the GPU's. */
function instanceUuid(gpuUuid: string, gpuInstance: number): string {
  const first = (Number.parseInt(gpuUuid.slice(4, 12), 16) ^ ((gpuInstance + 1) << 24)) >>> 0;
  return `MIG-${first.toString(16).padStart(8, '0')}${gpuUuid.slice(12)}`;
}
