import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { deviceName } from '../../../src/gpu/claims/names.js';
import { publishedDevices, type PublishedDevice, type PublishedGpu } from '../../../src/gpu/claims/published-device.js';
import { topologyOfPairs, type Topology } from '../../../src/gpu/topology/topology.js';
import { packageFile } from '../../../src/host/package-files.js';
import { BRIDGED, CUBE_MESH, gpuAt, PAIRED, switched, T4, T6, T8 } from '../topology/machines.js';

/** Two boards of eight GPUs; NVSwitch links every pair of a board. */
export const BOARDS = topologyOfPairs(16, (a, b) => ({
  level: 'SYS',
  nvlinks: Math.floor(a / 8) === Math.floor(b / 8) ? 18 : 0,
}));

export const MACHINES: Readonly<Record<string, Topology>> = {
  'four GPUs on two switches': T4,
  'six GPUs on three switches': T6,
  'eight GPUs on four switches': T8,
  'a hybrid cube mesh': CUBE_MESH,
  'eight GPUs behind NVSwitch': switched(8, 18),
  'three NVLink pairs and two single GPUs': BRIDGED,
  'four NVLink pairs on two sockets': PAIRED,
};

/** The devices of a machine. Its NUMA nodes are the groups of GPUs that no link between sockets parts. */
export function published(topology: Topology): readonly PublishedDevice[] {
  const gpus = topology.levels.map((levels, index): PublishedGpu => ({
    ...gpuAt(index),
    modelName: 'V100',
    computeCapability: null,
    pcieRoot: null,
    illness: null,
    numaNode: levels.findIndex((level, other) => other === index || level !== 'SYS'),
  }));
  const node = { gpus, topology, wholeInstances: false, divided: [], driverVersion: null, cudaVersion: null };
  return publishedDevices(node, () => true);
}

interface Subrequest {
  readonly name: string;
  readonly deviceClassName: string;
  readonly count: number;
}

export interface LinkedClaim {
  readonly devices: {
    readonly requests: readonly [{ readonly name: string; readonly firstAvailable: readonly Subrequest[] }];
    readonly constraints: readonly { readonly requests: readonly [string]; readonly matchAttribute: string }[];
  };
}

export const documentsOf = (path: string): readonly unknown[] =>
  parseAllDocuments(readFileSync(packageFile(path), 'utf8')).map((document) => document.toJS() as unknown);

const claims = new Map<number, LinkedClaim>();

/** The claim for `count` linked GPUs: gpu-pair of etc/dra/claims.yaml, or gpu-eight, for four with 4 in place of 8. */
export function linkedClaim(count: number): LinkedClaim {
  const known = claims.get(count);
  if (known !== undefined) return known;
  const templates = documentsOf('etc/dra/claims.yaml') as readonly {
    readonly metadata: { readonly name: string };
    readonly spec: { readonly spec: LinkedClaim };
  }[];
  const found = templates.find(({ metadata }) => metadata.name === (count === 2 ? 'gpu-pair' : 'gpu-eight'));
  const claim = JSON.parse(JSON.stringify(found?.spec.spec).replaceAll('8', String(count))) as LinkedClaim;
  claims.set(count, claim);
  return claim;
}

/** All sets of GPUs of a machine. */
export const subsetsOf = (gpus: number): number[][] =>
  Array.from({ length: 1 << gpus }, (_, set) =>
    Array.from({ length: gpus }, (__, gpu) => gpu).filter((gpu) => ((set >> gpu) & 1) === 1),
  );

/**
 * The GPUs that the scheduler allocates to a claim of etc/dra/claims.yaml: it takes the first devices of the list that
 * fit together, of the first alternative for which there are enough. `allocator.test.ts` compares this with the
 * scheduler's own allocator.
 */
export function allocated(
  devices: readonly PublishedDevice[],
  free: readonly number[],
  count: number,
): { readonly alternative: string; readonly gpus: readonly number[] } {
  const open = devices.filter(({ name }) => free.some((gpu) => deviceName(gpuAt(gpu).uuid) === name));
  const index = ({ attributes }: PublishedDevice): number => (attributes['index'] as { readonly int: number }).int;
  const { requests, constraints } = linkedClaim(count).devices;
  for (const { name: alternative } of requests[0].firstAvailable) {
    const attribute = constraints
      .find(({ requests: [name] }) => name === `${requests[0].name}/${alternative}`)
      ?.matchAttribute.replace('gpu.tencent.com/', '');
    const valueOf = (device: PublishedDevice): string | undefined =>
      attribute === undefined ? '' : JSON.stringify(device.attributes[attribute]);
    for (const first of open) {
      const value = valueOf(first);
      if (value === undefined) continue;
      const together = open.filter((device) => valueOf(device) === value).slice(0, count);
      if (together.length === count) return { alternative, gpus: together.map(index) };
    }
  }
  return { alternative: 'none', gpus: [] };
}
