import { Command, InvalidArgumentError } from 'commander';
import { parseCores, parseMemory, valueFor } from '../../manifests/container-value.js';
import { CORE_LIMIT_KEY, MEMORY_LIMIT_KEY, PRIORITY_KEY, SHARE_LIMIT_KEY } from '../../gpu/annotations.js';
import { parsePriority } from '../../gpu/priority.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { StartupError } from '../../host/startup-error.js';
import { podPath } from '../../kube/api-path.js';
import { MERGE_PATCH, type KubeApi } from '../../kube/client.js';
import { KubeError } from '../../kube/failure.js';
import { readPod, type Pod } from '../../kube/pod.js';
import { CORE_RESIZE_KEY, MEMORY_RESIZE_KEY } from '../../manifests/gpu-resize.js';
import { outputOption, print, type Output } from '../output.js';
import { refuseOptions } from '../refused-options.js';
import { gib } from '../terminal-text.js';
import { clusterCommand, listCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuContainer, GpuPod } from './gpu-cluster.js';
import { printListing, type ListingOptions, type ListingRow } from './listing.js';
import { selectedPods } from './pods.js';

interface SetOptions extends NamespaceOptions {
  readonly output: Output;
  readonly container?: string;
  readonly memory?: string;
  readonly share?: string;
  readonly soft?: string;
  readonly priority?: string;
}

/** The options of `set` with their annotations. */
const KEYS = {
  memory: MEMORY_LIMIT_KEY,
  share: SHARE_LIMIT_KEY,
  soft: CORE_LIMIT_KEY,
  priority: PRIORITY_KEY,
} as const;

type LimitName = keyof typeof KEYS;
const NAMES = Object.keys(KEYS) as readonly LimitName[];

const ONE_POD = {
  watch: 'it changes a pod once; kubectl gpu limits get -w shows the limits as they change',
  selector: 'name one pod; kubectl gpu limits get -l lists those with labels',
  allNamespaces: 'name one pod, and its namespace with -n',
};

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

/** The limits that the annotations of a pod request for one of its containers. */
function askedOf({ annotations }: Pod, container: string): Readonly<Partial<Record<LimitName, string>>> {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const whole = annotations[KEYS[name]];
      const value = whole === undefined ? undefined : valueFor(whole, container);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function setCommand(): Command {
  return refuseOptions(clusterCommand('set'), ONE_POD)
    .description('set limits of a running pod within its allocation, by annotations; the agent applies them at once')
    .argument('<pod>', 'name, or pod/name')
    .addOption(namespaceOption())
    .option('-c, --container <name>', 'only this container; default: every container')
    .option(
      '--memory <amount>',
      'memory over all GPUs of a container: blocks of 256 MiB, or bytes with a unit (4GiB)',
      (written: string) =>
        // Older agents know the units of Kubernetes only.
        checked(
          parseMemory,
          'blocks of 256 MiB such as 16, or an amount with a unit such as 4GiB',
        )(written.replace(/iB$/u, 'i')),
    )
    .option(
      '--share <cores>',
      'cores of each GPU that belong to a container',
      checked(parseCores, 'a number of cores from 1 to 100'),
    )
    .option(
      '--soft <cores>',
      'cores that a container may use while other containers leave the GPU idle',
      checked(parseCores, 'a number of cores from 1 to 100'),
    )
    .option('--priority <priority>', 'high, normal or low', checked(parsePriority, 'high, normal or low'))
    .addOption(outputOption())
    .action((name: string, options: SetOptions) => {
      if (NAMES.every((limit) => options[limit] === undefined))
        throw new StartupError('give at least one of --memory, --share, --soft and --priority');
      return withCluster(options, async ({ cluster, namespace }) => {
        const pod = await readTarget(cluster.api, namespace ?? 'default', name);
        const { gpuPod } = await cluster.podWithFigures(pod);
        const containers = targets(gpuPod, options.container);
        for (const container of containers) refuseBeyond(pod, container, options);
        const changes = Object.fromEntries(
          NAMES.flatMap((limit) => {
            const value = options[limit];
            return value === undefined ? [] : [[KEYS[limit], merged(gpuPod, KEYS[limit], options.container, value)]];
          }),
        );
        await annotate(cluster.api, pod, changes);
        await printChanges(options.output, pod, changes);
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
        const set = Object.values(KEYS).filter((key) => pod.annotations[key] !== undefined);
        const changes = Object.fromEntries(set.map((key) => [key, null]));
        if (set.length > 0) await annotate(cluster.api, pod, changes);
        await printChanges(options.output, pod, changes);
      }),
    );
}

/** Prints annotations that were written, and with null those that were removed. */
async function printChanges(
  output: Output,
  { namespace, name }: Pod,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  const lines = Object.entries(annotations).map(
    ([key, value]) => `pod/${name}: ${value === null ? `${key} removed` : `${key}=${value}`}\n`,
  );
  await print(output, {
    document: () => ({ namespace, pod: name, annotations }),
    table: () => (lines.length === 0 ? `pod/${name}: no annotation limits it\n` : lines.join('')),
  });
}

/** Keeps the text of the user if it can be read; the annotation shows what was written. */
function checked(parse: (text: string) => unknown, expected: string): (text: string) => string {
  return (text) => {
    if (parse(text) === null) throw new InvalidArgumentError(`Expected ${expected}.`);
    return text;
  };
}

async function readTarget(api: KubeApi, namespace: string, written: string): Promise<Pod> {
  const name = written.replace(/^pods?\//u, '');
  const answer = await api.request({ method: 'GET', path: podPath(namespace, name) });
  if (answer.ok) return readPod(answer.body);
  throw answer.code === 'not-found'
    ? new StartupError(`no pod ${name} in namespace ${namespace} (-n for another)`)
    : new KubeError(`pod ${namespace}/${name}`, answer);
}

function targets({ pod, containers }: GpuPod, wanted: string | undefined): readonly GpuContainer[] {
  if (containers.length === 0) throw new StartupError(`pod ${pod.name} asks for no GPU`);
  const chosen = containers.filter(({ name }) => wanted === undefined || name === wanted);
  if (chosen.length > 0) return chosen;
  throw new StartupError(
    `pod ${pod.name} has no container ${wanted} with a GPU; there are ${containers.map(({ name }) => name).join(', ')}`,
  );
}

/** Limits only lower what was allocated: the agent would ignore more, so it is refused here. */
function refuseBeyond(pod: Pod, { name, requested, allocation }: GpuContainer, options: SetOptions): void {
  const where = `container ${name}`;
  const given = requested.cores === 0 || requested.cores > CORES_PER_GPU ? CORES_PER_GPU : requested.cores;
  const share = options.share === undefined ? null : Number(options.share);
  if (share !== null && share > given)
    throw new StartupError(
      `${where}: a share of ${share} is more than its ${given} cores of a GPU; kubectl gpu limits resize asks for more`,
    );
  const asked = askedOf(pod, name);
  const effective = share ?? Number(asked.share ?? given);
  if (options.soft !== undefined && Number(options.soft) < effective)
    throw new StartupError(`${where}: a soft limit of ${options.soft} is below its share of ${effective}`);
  if (options.memory === undefined) return;
  const bytes = parseMemory(options.memory) ?? 0;
  const allocated = requested.memoryBlocks * MEMORY_BLOCK_BYTES;
  if (allocated > 0 && bytes > allocated)
    throw new StartupError(
      `${where}: ${options.memory} is more than its ${gib(allocated)} GiB (${requested.memoryBlocks} blocks); kubectl gpu limits resize asks for more`,
    );
  const used = allocation?.slices.reduce((sum, { usedMemoryBytes }) => sum + usedMemoryBytes, 0) ?? 0;
  if (bytes < used)
    throw new StartupError(`${where}: ${options.memory} is less than the ${gib(used)} GiB that it uses now`);
}

/** The annotation's new value: for one container, a list that keeps what the others have. */
function merged({ pod, containers }: GpuPod, key: string, container: string | undefined, value: string): string {
  if (container === undefined) return value;
  const entries = new Map(
    containers.flatMap(({ name }) => {
      const whole = pod.annotations[key];
      const before = whole === undefined ? undefined : valueFor(whole, name);
      return before === undefined ? [] : [[name, before] as const];
    }),
  );
  entries.set(container, value);
  return [...entries].map(([name, each]) => `${name}=${each}`).join(',');
}

async function annotate(
  api: KubeApi,
  { namespace, name, uid }: Pod,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  const answer = await api.request({
    method: 'PATCH',
    path: podPath(namespace, name),
    contentType: MERGE_PATCH,
    // With the UID, a new pod of the same name is refused.
    body: { metadata: { uid, annotations } },
  });
  if (!answer.ok) throw new KubeError(`pod ${namespace}/${name} cannot be annotated`, answer);
}
