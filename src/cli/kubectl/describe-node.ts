import type { GpuSnapshot, NodeSnapshot } from '../../agent/node/view.js';
import { gib, printable, table } from '../terminal-text.js';
import type { GpuCluster } from './gpu-cluster.js';

/** One node with the answer of its agent. */
export interface DescribedNode {
  readonly name: string;
  readonly snapshot: NodeSnapshot;
}

/** Reads a node for `kubectl gpu describe node/NAME`. Throws if it does not exist or its agent does not answer. */
export async function describeNode(cluster: GpuCluster, name: string): Promise<DescribedNode> {
  const node = await cluster.node(name);
  if (node === null) throw new Error(`no node ${name}: kubectl gpu nodes lists those with GPUs`);
  if (node.snapshot === null) throw new Error(`node ${name}: ${node.problem} (kubectl gpu doctor ${name} says more)`);
  return { name, snapshot: node.snapshot };
}

/** What enforces memory limits on a GPU. */
function enforcersOf({ memoryEnforcer }: GpuSnapshot): { readonly memory: string; readonly why: string | null } {
  if (memoryEnforcer === undefined)
    return { memory: 'library', why: 'drivers from 615 on can enforce memory limits too' };
  return memoryEnforcer.by === 'driver'
    ? { memory: `driver (${memoryEnforcer.backend})`, why: null }
    : { memory: 'library', why: memoryEnforcer.reason };
}

export function nodeDocument({ name, snapshot }: DescribedNode): object {
  return {
    name,
    agentVersion: snapshot.version,
    driverVersion: snapshot.driverVersion,
    gpus: snapshot.gpus.map((gpu) => ({
      index: gpu.index,
      uuid: gpu.uuid,
      model: gpu.model,
      health: gpu.health.status,
      allocatedCores: gpu.allocatedCores,
      allocatedMemoryBytes: gpu.allocatedMemoryBytes,
      memoryBytes: gpu.memoryBytes,
      memoryLimitsBy: gpu.memoryEnforcer?.by ?? 'library',
      memoryLimitsReason: enforcersOf(gpu).why,
      computeSharesBy: gpu.compute === 'sm' ? 'mps' : 'library',
    })),
  };
}

export function nodeText({ name, snapshot }: DescribedNode): string {
  const { version, driverVersion, driverOutage, notReady, gpus, allocations } = snapshot;
  const reasons = new Map(
    gpus.flatMap((gpu) => {
      const { why } = enforcersOf(gpu);
      return why === null ? [] : [[gpu.index, why] as const];
    }),
  );
  const fields: readonly (readonly [string, string])[] = [
    ['Name', name],
    ['Agent', notReady.length === 0 ? version : `${version}, not ready: ${notReady.join('; ')}`],
    ['Driver', driverOutage ?? driverVersion ?? 'of unknown version'],
    ['Allocations', String(allocations.length)],
  ];
  return [
    ...fields.map(([field, value]) => `${`${field}:`.padEnd(13)} ${printable(value)}\n`),
    '\n',
    table(
      ['GPU', 'MODEL', 'HEALTH', 'CORES', 'MEMORY', 'MEMORY LIMITS BY', 'COMPUTE SHARES BY', 'UUID'],
      gpus.map((gpu) => [
        String(gpu.index),
        gpu.model,
        gpu.health.status,
        `${gpu.allocatedCores}/100`,
        `${gib(gpu.allocatedMemoryBytes)}/${gib(gpu.memoryBytes)} GiB`,
        enforcersOf(gpu).memory,
        gpu.compute === 'sm' ? 'MPS (SMs)' : 'library',
        gpu.uuid,
      ]),
    ),
    ...[...new Set(reasons.values())].map((why) => {
      const indexes = [...reasons].flatMap(([index, reason]) => (reason === why ? index : []));
      return `\nGPU ${indexes.join(', ')}: memory limits by the library: ${printable(why)}\n`;
    }),
  ].join('');
}
