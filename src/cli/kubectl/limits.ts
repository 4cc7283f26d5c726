import { Command } from 'commander';
import { parseCores, parseMemory } from '../../manifests/container-value.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { StartupError } from '../../host/startup-error.js';
import { CORE_RESIZE_KEY, MEMORY_RESIZE_KEY } from '../../manifests/gpu-resize.js';
import { outputOption, type Output } from '../output.js';
import { refuseOptions } from '../refused-options.js';
import { gib } from '../terminal-text.js';
import { clusterCommand, listCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuContainer, GpuPod } from './gpu-cluster.js';
import {
  annotate,
  askedOf,
  checked,
  LIMIT_KEYS,
  merged,
  ONE_POD,
  printChanges,
  readTarget,
  targets,
} from './limit-annotations.js';
import { setCommand } from './limits-set.js';
import { printListing, type ListingOptions, type ListingRow } from './listing.js';
import { selectedPods } from './pods.js';

/** `kubectl gpu limits`: shows and changes the limits of running pods, by their annotations. */
export function limitsCommand(): Command {
  const command = new Command('limits').description('show and set the limits of running pods');
  command.addCommand(getCommand());
  command.addCommand(setCommand());
  command.addCommand(resizeCommand());
  command.addCommand(releaseCommand());
  return command;
}

function getCommand(): Command {
  return listCommand('get')
    .description('list the limits of the containers with GPUs: in force, allocated, and asked for by annotations')
    .argument('[pods...]', 'only these pods')
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions) =>
      withCluster(options, ({ cluster, namespace }) =>
        printListing(options, async () => {
          cluster.refresh();
          const { pods, problems } = await cluster.pods(namespace, options.selector ?? null);
          return {
            headings: [
              ...(namespace === null ? ['NAMESPACE'] : []),
              ...['POD', 'CONTAINER', 'GPU', 'SHARE', 'UP TO', 'MEMORY', 'USED', 'PRIORITY', 'ASKED'],
            ],
            wideHeadings: ['GPU UUID', 'ALLOCATION'],
            rows: selectedPods(pods, names, namespace)
              .filter(({ pod }) => !pod.isDone)
              .flatMap((gpuPod) => rowsOf(gpuPod, namespace === null)),
            none: `no running pod asks for GPUs in ${namespace === null ? 'any namespace' : `namespace ${namespace} (-A for all)`}`,
            problems,
          };
        }),
      ),
    );
}

function rowsOf({ pod, containers }: GpuPod, hasNamespace: boolean): readonly ListingRow[] {
  return containers.flatMap((container): readonly ListingRow[] => {
    const asked = askedOf(pod, container.name);
    const place = [...(hasNamespace ? [pod.namespace] : []), pod.name, container.name];
    const words = Object.entries(asked)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ');
    const base = { namespace: pod.namespace, pod: pod.name, container: container.name, asked };
    if (container.allocation === null)
      return [
        {
          cells: [...place, container.gpus.join(',') || '-', '-', '-', '-', '-', '-', words || '-'],
          wide: ['-', '-'],
          document: { ...base, gpus: container.gpus },
        },
      ];
    const { allocation } = container;
    return allocation.slices.map((slice) => {
      const limit = slice.memoryLimitBytes ?? slice.gpuMemoryBytes;
      const given = slice.allocatedMemoryBytes ?? slice.gpuMemoryBytes;
      return {
        cells: [
          ...place,
          String(slice.gpuIndex),
          slice.share === slice.allocatedCores ? String(slice.share) : `${slice.share} of ${slice.allocatedCores}`,
          slice.softLimit === null ? '-' : String(slice.softLimit),
          limit === given ? `${gib(limit)} GiB` : `${gib(limit)} of ${gib(given)} GiB`,
          `${gib(slice.usedMemoryBytes)} GiB`,
          slice.priority ?? 'normal',
          words || '-',
        ],
        wide: [slice.gpuUuid, allocation.id],
        document: {
          ...base,
          gpuIndex: slice.gpuIndex,
          gpuUuid: slice.gpuUuid,
          allocation: allocation.id,
          share: slice.share,
          allocatedShare: slice.allocatedCores,
          softLimit: slice.softLimit,
          memoryBytes: limit,
          allocatedMemoryBytes: given,
          usedMemoryBytes: slice.usedMemoryBytes,
          priority: slice.priority ?? 'normal',
          unenforced: allocation.unenforced,
        },
      };
    });
  });
}

interface ResizeOptions extends NamespaceOptions {
  readonly output: Output;
  readonly container?: string;
  readonly cores?: string;
  readonly memory?: string;
  readonly request: boolean;
}

/** The options of `resize` with their annotations. */
const RESIZE_KEYS = { cores: CORE_RESIZE_KEY, memory: MEMORY_RESIZE_KEY } as const;

function resizeCommand(): Command {
  return refuseOptions(clusterCommand('resize'), ONE_POD)
    .description(
      'ask for more of its GPU for a running pod than it requested; the agent answers with an event and in the annotation tencent.com/vcuda-resize-status',
    )
    .argument('<pod>', 'name, or pod/name')
    .addOption(namespaceOption())
    .option('-c, --container <name>', 'only this container; default: every container')
    .option(
      '--cores <cores>',
      'cores that a container should have',
      checked(parseCores, 'a number of cores from 1 to 100'),
    )
    .option(
      '--memory <amount>',
      'memory that a container should have: blocks of 256 MiB, or bytes with a unit (4GiB)',
      checked(parseMemory, 'blocks of 256 MiB such as 16, or an amount with a unit such as 4GiB'),
    )
    .option('--request', 'only what the pod requested: removes the annotations of all its containers', false)
    .addOption(outputOption())
    .action((name: string, options: ResizeOptions) => {
      const isAsked = options.cores !== undefined || options.memory !== undefined;
      if (isAsked === options.request) throw new StartupError('give --cores, --memory or both, or --request alone');
      return withCluster(options, async ({ cluster, namespace }) => {
        const pod = await readTarget(cluster.api, namespace ?? 'default', name);
        const { gpuPod } = await cluster.podWithFigures(pod);
        const containers = targets(gpuPod, options.container);
        for (const container of containers) refuseBelowRequest(container, options);
        const changes = Object.fromEntries(
          (['cores', 'memory'] as const).flatMap((amount): readonly (readonly [string, string | null])[] => {
            const [key, value] = [RESIZE_KEYS[amount], options[amount]];
            if (options.request) return pod.annotations[key] === undefined ? [] : [[key, null]];
            return value === undefined ? [] : [[key, merged(gpuPod, key, options.container, value)]];
          }),
        );
        if (Object.keys(changes).length > 0) await annotate(cluster.api, pod, changes);
        await printChanges(options.output, pod, changes);
      });
    });
}

function refuseBelowRequest({ name, requested }: GpuContainer, { cores, memory }: ResizeOptions): void {
  const lower = `kubectl gpu limits set lowers its limits`;
  if (cores !== undefined && Number(cores) < requested.cores)
    throw new StartupError(
      `container ${name}: ${cores} cores are less than the ${requested.cores} requested; ${lower}`,
    );
  const bytes = memory === undefined ? null : parseMemory(memory);
  if (bytes !== null && bytes < requested.memoryBlocks * MEMORY_BLOCK_BYTES)
    throw new StartupError(
      `container ${name}: ${memory} is less than the ${requested.memoryBlocks} blocks requested; ${lower}`,
    );
}

function releaseCommand(): Command {
  return refuseOptions(clusterCommand('release'), ONE_POD)
    .description('remove limits that annotations set: the pod gets its allocation again')
    .argument('<pod>', 'name, or pod/name')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .action((name: string, options: NamespaceOptions & { readonly output: Output }) =>
      withCluster(options, async ({ cluster, namespace }) => {
        const pod = await readTarget(cluster.api, namespace ?? 'default', name);
        const set = Object.values(LIMIT_KEYS).filter((key) => pod.annotations[key] !== undefined);
        const changes = Object.fromEntries(set.map((key) => [key, null]));
        if (set.length > 0) await annotate(cluster.api, pod, changes);
        await printChanges(options.output, pod, changes);
      }),
    );
}
