import type { Command } from 'commander';
import type { AllocationSnapshot, SliceSnapshot } from '../../agent/node/view.js';
import { StartupError } from '../../host/startup-error.js';
import { isScreen, usesColor } from '../top.js';
import { gib } from '../terminal-text.js';
import { containerName } from '../usage.js';
import { clusterSource } from './cluster-source.js';
import { listCommand, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuNode } from './gpu-cluster.js';
import { printListing, type ListingOptions, type ListingRow } from './listing.js';
import { selectedNodes } from './nodes.js';

/** `kubectl gpu top`: the slices of all nodes, the busiest first. */
export function topCommand(): Command {
  return listCommand('top', {
    namespace: 'only containers of this namespace; default: of all',
    selector: 'only nodes with these labels',
  })
    .description('list the slices of all nodes, or of some, the busiest first')
    .argument('[nodes...]', 'only these nodes')
    .option('-i, --interactive', 'full screen, refreshed every two seconds; ? shows the keys, q quits')
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions & { readonly interactive?: true }) =>
      withCluster(options, ({ cluster }) => {
        const read = async (mustExist: boolean): Promise<readonly GpuNode[]> => {
          cluster.refresh();
          const all = await cluster.nodes(options.selector ?? null);
          const chosen = mustExist ? selectedNodes(all, names) : all.filter(isNamed);
          return place === null ? chosen : chosen.map((node) => inNamespace(node, place));
        };
        const isNamed = ({ node }: GpuNode): boolean => names.length === 0 || names.includes(node.name);
        const place = options.allNamespaces === true ? null : (options.namespace ?? null);
        if (options.interactive === true) return interactive(read);
        return printListing(options, async () => {
          const nodes = await read(true);
          const slices = nodes.flatMap(({ node, snapshot }) =>
            (snapshot?.allocations ?? []).flatMap((allocation) =>
              allocation.slices.map((slice) => ({ node: node.name, allocation, slice })),
            ),
          );
          slices.sort((a, b) => b.slice.usedPercent - a.slice.usedPercent);
          return {
            headings: ['NODE', 'GPU', 'CONTAINER', 'CORES', 'MEMORY', 'THROTTLED', 'PROCESSES'],
            wideHeadings: ['GPU UUID', 'ALLOCATION'],
            rows: slices.map(({ node, allocation, slice }) => rowOf(node, allocation, slice)),
            none: `no container${place === null ? '' : ` of namespace ${place}`} has a slice`,
            asked: nodes.length,
            problems: new Map(
              nodes.flatMap(({ node, problem }) => (problem === '' ? [] : [[node.name, problem] as const])),
            ),
          };
        });
      }),
    );
}

/** The node with the containers of one namespace only. */
function inNamespace(node: GpuNode, place: string): GpuNode {
  if (node.snapshot === null) return node;
  const allocations = node.snapshot.allocations.filter(({ owners }) =>
    owners.some(({ namespace }) => namespace === place),
  );
  return { ...node, snapshot: { ...node.snapshot, allocations } };
}

/** Time between two samples; each asks every agent. */
const DELAY_MS = 2_000;

async function interactive(read: (mustExist: boolean) => Promise<readonly GpuNode[]>): Promise<void> {
  if (!isScreen()) throw new StartupError('--interactive needs a terminal: leave it out, or use --watch');
  const { watch } = await import('../top/watch.js');
  await watch(clusterSource(read), { delayMs: DELAY_MS, mouse: true, color: usesColor() });
}

function rowOf(node: string, allocation: AllocationSnapshot, slice: SliceSnapshot): ListingRow {
  const limit = slice.memoryLimitBytes ?? slice.gpuMemoryBytes;
  const throttled = slice.counters?.throttledSeconds ?? null;
  return {
    cells: [
      node,
      String(slice.gpuIndex),
      containerName(allocation),
      `${slice.usedPercent.toFixed(0)}/${slice.share}`,
      `${gib(slice.usedMemoryBytes)}/${gib(limit)} GiB`,
      throttled === null ? '-' : `${throttled.toFixed(1)} s`,
      String(slice.pids.length),
    ],
    wide: [slice.gpuUuid, allocation.id],
    document: {
      node,
      gpuIndex: slice.gpuIndex,
      gpuUuid: slice.gpuUuid,
      container: containerName(allocation),
      allocation: allocation.id,
      usedCores: slice.usedPercent,
      cores: slice.share,
      usedMemoryBytes: slice.usedMemoryBytes,
      memoryBytes: limit,
      throttledSeconds: throttled,
      processes: slice.pids.length,
    },
  };
}
