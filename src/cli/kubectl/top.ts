import type { Command } from 'commander';
import type { AllocationSnapshot, SliceSnapshot } from '../../agent/display/view.js';
import { outputOption } from '../output.js';
import { gib } from '../terminal-text.js';
import { containerName } from '../usage.js';
import { watchOption } from '../watch.js';
import {
  allNamespacesOption,
  clusterCommand,
  namespaceOption,
  withCluster,
  type NamespaceOptions,
} from './cluster-command.js';
import { printListing, type ListingOptions, type ListingRow } from './listing.js';
import { selectedNodes } from './nodes.js';

/** `kubectl gpu top`: the slices of all nodes, the busiest first. */
export function topCommand(): Command {
  return clusterCommand('top')
    .description('list the slices of all nodes, or of some, the busiest first')
    .argument('[nodes...]', 'only these nodes')
    .addOption(namespaceOption('only containers of this namespace; default: of all'))
    .addOption(allNamespacesOption())
    .option('-l, --selector <labels>', 'only nodes with these labels')
    .addOption(watchOption())
    .addOption(outputOption())
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions) =>
      withCluster(options, ({ cluster }) =>
        printListing(options, async () => {
          cluster.refresh();
          const all = await cluster.nodes(options.selector ?? null);
          const nodes = selectedNodes(all, names);
          const place = options.allNamespaces === true ? null : (options.namespace ?? null);
          const isShown = ({ owners }: AllocationSnapshot): boolean =>
            place === null || owners.some(({ namespace }) => namespace === place);
          const slices = nodes.flatMap(({ node, snapshot }) =>
            (snapshot?.allocations ?? [])
              .filter(isShown)
              .flatMap((allocation) => allocation.slices.map((slice) => ({ node: node.name, allocation, slice }))),
          );
          slices.sort((a, b) => b.slice.usedPercent - a.slice.usedPercent);
          return {
            headings: ['NODE', 'GPU', 'CONTAINER', 'CORES', 'MEMORY', 'THROTTLED', 'PROCESSES'],
            wideHeadings: ['GPU UUID', 'ALLOCATION'],
            rows: slices.map(({ node, allocation, slice }) => rowOf(node, allocation, slice)),
            none: `no container${place === null ? '' : ` of namespace ${place}`} has a slice`,
            problems: new Map(
              nodes.flatMap(({ node, problem }) => (problem === '' ? [] : [[node.name, problem] as const])),
            ),
          };
        }),
      ),
    );
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
