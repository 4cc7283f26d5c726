import type { Command } from 'commander';
import { CORE_RESOURCE, CORES_PER_GPU } from '../../gpu/resources.js';
import { ignoreNamespaces } from '../refused-options.js';
import { gib } from '../terminal-text.js';
import { clusterCommand, selectorOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuNode } from './gpu-cluster.js';
import { addListingOptions, printListing, type Listing, type ListingOptions, type ListingRow } from './listing.js';
import { selection } from './selection.js';

/** `kubectl gpu nodes`: the nodes with GPUs, what is allocated there and what is used. */
export function nodesCommand(): Command {
  return addListingOptions(ignoreNamespaces(clusterCommand('nodes')), true)
    .description('list the nodes with GPUs: what is allocated there, what is used, and whether the agent answers')
    .argument('[names...]', 'only these nodes')
    .addOption(selectorOption())
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions) =>
      withCluster(options, ({ cluster }) =>
        printListing(options, async () => {
          cluster.refresh();
          const nodes = await cluster.nodes(options.selector ?? null);
          return listing(selectedNodes(nodes, names));
        }),
      ),
    );
}

/** The nodes with these names, or all. Throws if one has no GPUs. */
export function selectedNodes(nodes: readonly GpuNode[], names: readonly string[]): readonly GpuNode[] {
  return selection(
    nodes,
    names,
    ({ node }) => node.name,
    (missing) => `no node with GPUs is called ${missing}`,
  );
}

function listing(nodes: readonly GpuNode[]): Listing {
  return {
    headings: ['NAME', 'STATUS', 'GPUS', 'MODEL', 'CORES', 'MEMORY', 'USED', 'USE', 'SLICES'],
    wideHeadings: ['AGENT', 'VERSION', 'DRIVER', 'UNHEALTHY'],
    rows: nodes.map(rowOf),
    kind: 'node',
    none: 'no node has GPUs: do the agents run? (kubectl get pods -A -l app.kubernetes.io/name=gpu-manager)',
    problems: new Map(nodes.flatMap(({ node, problem }) => (problem === '' ? [] : [[node.name, problem] as const]))),
  };
}

interface Gpus {
  readonly models: readonly string[];
  readonly memoryBytes: number;
  readonly allocatedCores: number;
  readonly allocatedMemoryBytes: number;
  readonly unhealthy: number;
  readonly count: number;
}

function rowOf({ node, agent, snapshot, problem, inventory }: GpuNode): ListingRow {
  const gpus: Gpus =
    snapshot === null
      ? {
          models: inventory.map(({ gpu }) => gpu.model),
          memoryBytes: sum(inventory, ({ gpu }) => gpu.memoryBytes),
          allocatedCores: sum(inventory, ({ freeCores }) => CORES_PER_GPU - freeCores),
          allocatedMemoryBytes: sum(inventory, ({ gpu, freeMemoryBytes }) => gpu.memoryBytes - freeMemoryBytes),
          unhealthy: inventory.filter(({ healthy }) => !healthy).length,
          count: inventory.length || Math.floor((node.allocatable.get(CORE_RESOURCE) ?? 0) / CORES_PER_GPU),
        }
      : {
          models: snapshot.gpus.map(({ model }) => model),
          memoryBytes: sum(snapshot.gpus, ({ memoryBytes }) => memoryBytes),
          allocatedCores: sum(snapshot.gpus, ({ allocatedCores }) => allocatedCores),
          allocatedMemoryBytes: sum(snapshot.gpus, ({ allocatedMemoryBytes }) => allocatedMemoryBytes),
          unhealthy: snapshot.gpus.filter(({ health }) => health.status !== 'healthy').length,
          count: snapshot.gpus.length,
        };
  const status = statusOf(node.isCordoned, agent === null, snapshot?.notReady ?? null, gpus.unhealthy);
  const used = snapshot === null ? null : sum(snapshot.gpus, ({ usedMemoryBytes }) => usedMemoryBytes ?? 0);
  const busy = snapshot?.gpus.flatMap(({ usedPercent }) => usedPercent ?? []) ?? [];
  const use = busy.length === 0 ? null : Math.round(sum(busy, (percent) => percent) / busy.length);
  const models = [...new Set(gpus.models)];
  const isUnknown = snapshot === null && inventory.length === 0;
  const document = {
    name: node.name,
    status,
    gpus: gpus.count,
    models,
    allocatedCores: isUnknown ? null : gpus.allocatedCores,
    cores: gpus.count * CORES_PER_GPU,
    allocatedMemoryBytes: isUnknown ? null : gpus.allocatedMemoryBytes,
    memoryBytes: gpus.memoryBytes,
    usedMemoryBytes: used,
    usedPercent: use,
    slices: snapshot === null ? null : sum(snapshot.allocations, ({ slices }) => slices.length),
    unhealthyGpus: gpus.unhealthy,
    agent: agent === null ? null : `${agent.namespace}/${agent.name}`,
    agentVersion: snapshot?.version ?? null,
    driverVersion: snapshot?.driverVersion ?? null,
    problem: problem === '' ? null : problem,
  };
  return {
    cells: [
      node.name,
      status,
      String(gpus.count),
      models.join(', ') || '-',
      isUnknown ? '-' : `${gpus.allocatedCores}/${document.cores}`,
      isUnknown ? '-' : `${gib(gpus.allocatedMemoryBytes)}/${gib(gpus.memoryBytes)} GiB`,
      used === null ? '-' : `${gib(used)} GiB`,
      use === null ? '-' : `${use} %`,
      document.slices === null ? '-' : String(document.slices),
    ],
    wide: [
      document.agent ?? '-',
      document.agentVersion ?? '-',
      document.driverVersion ?? '-',
      String(document.unhealthyGpus),
    ],
    document,
  };
}

function statusOf(
  isCordoned: boolean,
  isWithoutAgent: boolean,
  notReady: readonly string[] | null,
  unhealthy: number,
): string {
  const states = [
    isWithoutAgent ? 'NoAgent' : notReady === null ? 'Unknown' : notReady.length > 0 ? 'NotReady' : 'Ready',
    ...(unhealthy > 0 ? ['GPUUnhealthy'] : []),
    ...(isCordoned ? ['SchedulingDisabled'] : []),
  ];
  return states.join(',');
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
