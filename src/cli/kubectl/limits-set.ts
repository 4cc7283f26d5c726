import { Option, type Command } from 'commander';
import { divisionOf } from '../../gpu/division.js';
import { ANY_GPUS, readSelection, selectionFor } from '../../gpu/gpu-selection.js';
import { parsePriority } from '../../gpu/priority.js';
import { CORES_PER_GPU, MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { StartupError } from '../../host/startup-error.js';
import type { Pod } from '../../kube/pod.js';
import { parseCores, parseMemory } from '../../manifests/container-value.js';
import { secondsBetween } from '../flag-values.js';
import { outputOption, type Output } from '../output.js';
import { refuseOptions } from '../refused-options.js';
import { gib, printable } from '../terminal-text.js';
import { clusterCommand, namespaceOption, withCluster, type NamespaceOptions } from './cluster-command.js';
import type { GpuContainer } from './gpu-cluster.js';
import {
  annotate,
  askedOf,
  checked,
  LIMIT_KEYS,
  LIMIT_NAMES,
  merged,
  ONE_POD,
  printChanges,
  readTarget,
  targets,
} from './limit-annotations.js';
import { limitEvents, limitsOutcome, type AskedLimits, type LimitsOutcome } from './limits-outcome.js';

interface SetOptions extends NamespaceOptions {
  readonly output: Output;
  readonly container?: string;
  readonly memory?: string;
  readonly cores?: string;
  readonly share?: string;
  readonly soft?: string;
  readonly priority?: string;
  /** Seconds. */
  readonly wait: number;
  readonly dryRun: boolean;
}

/** How long `set` waits for the agent, in seconds. */
const WAIT_SECONDS = 10;

/** `kubectl gpu limits set`: lowers the limits of a running pod. */
export function setCommand(): Command {
  return refuseOptions(clusterCommand('set'), ONE_POD)
    .description(
      'set limits of a running pod within its allocation, by annotations, and say whether its agent applied them',
    )
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
      '--cores <cores>',
      'cores of each GPU that belong to a container',
      checked(parseCores, 'a number of cores from 1 to 100'),
    )
    .addOption(
      new Option('--share <cores>', 'the earlier name of --cores')
        .argParser(checked(parseCores, 'a number of cores from 1 to 100'))
        .conflicts('cores'),
    )
    .option(
      '--soft <cores>',
      'cores that a container may use while other containers leave the GPU idle',
      checked(parseCores, 'a number of cores from 1 to 100'),
    )
    .option('--priority <priority>', 'high, normal or low', checked(parsePriority, 'high, normal or low'))
    .option(
      '--wait <seconds>',
      'how long to wait until the agent applied or refused the limits; 0: do not wait',
      secondsBetween(0, 3_600),
      WAIT_SECONDS,
    )
    .option('--dry-run', 'check the limits and print the annotations, but write nothing', false)
    .addOption(outputOption())
    .action((name: string, { cores, ...options }: SetOptions) =>
      setLimits(name, cores === undefined ? options : { ...options, share: cores }),
    );
}

function setLimits(name: string, options: SetOptions): Promise<void> {
  if (LIMIT_NAMES.every((limit) => options[limit] === undefined))
    throw new StartupError('give at least one of --memory, --cores, --soft and --priority');
  return withCluster(options, async ({ cluster, namespace }) => {
    const pod = await readTarget(cluster.api, namespace ?? 'default', name);
    const { gpuPod } = await cluster.podWithFigures(pod);
    const containers = targets(gpuPod, options.container);
    for (const container of containers) refuseBeyond(pod, container, options);
    const changes = Object.fromEntries(
      LIMIT_NAMES.flatMap((limit) => {
        const value = options[limit];
        return value === undefined
          ? []
          : [[LIMIT_KEYS[limit], merged(gpuPod, LIMIT_KEYS[limit], options.container, value)]];
      }),
    );
    if (options.dryRun)
      return printChanges(options.output, pod, changes, { document: { dryRun: true }, mark: ' (dry run)' });
    // An agent that already refused these very limits does not say so again.
    const isNew = Object.entries(changes).some(([key, value]) => pod.annotations[key] !== value);
    const before = isNew && options.wait > 0 ? await limitEvents(cluster, pod) : [];
    await annotate(cluster.api, pod, changes);
    if (options.wait === 0) return printChanges(options.output, pod, changes);
    const asked = askedLimits(options, containers);
    const outcome = await limitsOutcome(cluster, pod, asked, { before, waitMs: options.wait * 1000 });
    await printChanges(options.output, pod, changes, {
      document: { outcome },
      lines: [printable(outcomeText(outcome, options.wait))],
    });
    if (outcome.state === 'refused' || outcome.state === 'not seen') process.exitCode = 1;
  });
}

function askedLimits(options: SetOptions, containers: readonly GpuContainer[]): AskedLimits {
  const { memory, share, soft, priority } = options;
  return {
    containers: containers.map(({ name }) => name),
    memoryBytes: memory === undefined ? null : parseMemory(memory),
    cores: share === undefined ? null : Number(share),
    softLimit: soft === undefined ? null : Number(soft),
    priority: priority === undefined ? null : parsePriority(priority),
  };
}

function outcomeText(outcome: LimitsOutcome, waitSeconds: number): string {
  switch (outcome.state) {
    case 'applied':
      return 'applied';
    case 'refused':
      return `refused: ${outcome.why} (kubectl gpu limits release removes the annotations)`;
    case 'not seen':
      return `not seen after ${waitSeconds} s: ${outcome.why}`;
    case 'not running':
      return 'applies when its containers start: it has no node yet';
  }
}

/** Limits only lower what was allocated: the agent would ignore more, so it is refused here. */
function refuseBeyond(pod: Pod, { name, requested, allocation }: GpuContainer, options: SetOptions): void {
  const where = `container ${name}`;
  const read = readSelection((key) => pod.annotations[key]);
  const each = divisionOf(requested.cores, selectionFor(read.ok ? read.selection : ANY_GPUS, name)).coresEach;
  const given = requested.cores === 0 ? CORES_PER_GPU : each;
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
