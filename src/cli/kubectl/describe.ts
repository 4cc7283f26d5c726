import type { Command } from 'commander';
import type { JournalEntry } from '../../agent/node/journal.js';
import {
  CORE_LIMIT_KEY,
  CPU_AFFINITY_KEY,
  ENFORCEMENT_KEY,
  EQUAL_GPUS_KEY,
  MEMORY_LIMIT_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  PRIORITY_KEY,
  SHARE_LIMIT_KEY,
} from '../../gpu/annotations.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { eventsPath, podPath } from '../../kube/api-path.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import { listAll } from '../../kube/list-all.js';
import { readPod } from '../../kube/pod.js';
import { outputOption, print, type Output } from '../output.js';
import { refuseOptions } from '../refused-options.js';
import { age, gib, printable, table } from '../terminal-text.js';
import {
  clusterCommand,
  namespaceOption,
  withCluster,
  type NamespaceOptions,
  type OpenCluster,
} from './cluster-command.js';
import { readEvent, type ClusterEvent } from '../../kube/cluster-event.js';
import type { GpuContainer, GpuPod } from './gpu-cluster.js';
import { stateOf, whyNot } from './pods.js';

const ANNOTATIONS = [
  MEMORY_LIMIT_KEY,
  SHARE_LIMIT_KEY,
  CORE_LIMIT_KEY,
  PRIORITY_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  ENFORCEMENT_KEY,
  EQUAL_GPUS_KEY,
  CPU_AFFINITY_KEY,
];

/** `kubectl gpu describe POD`: everything that is known about the GPUs of one pod. */
export function describeCommand(): Command {
  return refuseOptions(clusterCommand('describe'), {
    watch: 'it describes a pod once; kubectl gpu pods POD -w follows it',
    selector: 'name one pod; kubectl gpu pods -l lists those with labels',
    allNamespaces: 'name one pod, and its namespace with -n',
  })
    .description("describe a pod's GPUs: requests, limits and use of its containers, why it waits, findings and events")
    .argument('<pod>', 'name, or pod/name')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .action((name: string, options: NamespaceOptions & { readonly output: Output }) =>
      withCluster(options, async (open) => {
        const described = await describe(open, name.replace(/^pods?\//u, ''));
        await print(options.output, { document: () => documentOf(described), table: () => textOf(described) });
      }),
    );
}

/** A pod, its events at the API server, and the events of its agent. */
interface Described {
  readonly gpuPod: GpuPod;
  readonly problem: string;
  readonly events: readonly ClusterEvent[];
  readonly agentEvents: readonly JournalEntry[];
}

async function describe({ cluster, namespace }: OpenCluster, name: string): Promise<Described> {
  const place = namespace ?? 'default';
  const answer = await cluster.api.request({ method: 'GET', path: podPath(place, name) });
  if (!answer.ok)
    throw answer.code === 'not-found'
      ? new Error(`no pod ${name} in namespace ${place} (-n for another)`)
      : new KubeError(`pod ${place}/${name}`, answer);
  const pod = readPod(answer.body);
  const [{ pods, problems }, events] = await Promise.all([
    cluster.withFigures([pod]),
    listAll(cluster.api, 'events', eventsPath(place), { fieldSelector: `involvedObject.name=${name}` }).then(
      (objects) => objects.map(readEvent).filter(({ uid }) => uid === '' || uid === pod.uid),
      () => [],
    ),
  ]);
  const gpuPod = pods[0] as GpuPod;
  const agent = pod.node === null ? undefined : (await cluster.agents().catch(() => null))?.get(pod.node);
  const ids = [...new Set(gpuPod.containers.flatMap(({ allocation }) => allocation?.id ?? []))];
  const answers = await Promise.all(
    agent === undefined ? [] : ids.map((id) => cluster.reader.read(agent, `/api/allocations/${id}`)),
  );
  const agentEvents = answers.flatMap((one) =>
    one.ok ? (list(record(one.body).events) as readonly JournalEntry[]) : [],
  );
  return {
    gpuPod,
    problem: pod.node === null ? '' : (problems.get(pod.node) ?? ''),
    events: events.sort((a, b) => a.atMs - b.atMs),
    agentEvents: agentEvents.sort((a, b) => a.sequence - b.sequence),
  };
}

function documentOf({ gpuPod: { pod, containers }, problem, events, agentEvents }: Described): object {
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    node: pod.node,
    status: stateOf(pod),
    why: whyNot(pod) || null,
    annotations: annotationsOf(pod.annotations),
    problem: problem || null,
    containers: containers.map(({ name, requested, gpus, allocation }) => ({
      name,
      requestedCores: requested.cores,
      requestedMemoryBytes: requested.memoryBlocks * MEMORY_BLOCK_BYTES,
      gpus,
      allocation,
    })),
    events,
    agentEvents,
  };
}

function annotationsOf(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(ANNOTATIONS.flatMap((key) => (all[key] === undefined ? [] : [[key, all[key]]])));
}

function textOf({ gpuPod: { pod, containers }, problem, events, agentEvents }: Described): string {
  const why = whyNot(pod);
  const annotations = Object.entries(annotationsOf(pod.annotations)).map(([key, value]) => `${key}=${value}`);
  const fields: readonly (readonly [string, string])[] = [
    ['Name', pod.name],
    ['Namespace', pod.namespace],
    ['Node', pod.node ?? '-'],
    ['Status', stateOf(pod)],
    ...(why === '' ? [] : [['Why', why] as const]),
    ...(annotations.length === 0 ? [] : [['Annotations', annotations.join(', ')] as const]),
    ...(problem === '' ? [] : [['No figures', problem] as const]),
  ];
  return [
    ...fields.map(([name, value]) => `${`${name}:`.padEnd(13)} ${printable(value)}\n`),
    ...(containers.length === 0 ? ['This pod asks for no GPU.\n'] : containers.map(containerText)),
    events.length === 0
      ? ''
      : `\nEvents:\n${table(
          ['LAST SEEN', 'TYPE', 'REASON', 'MESSAGE'],
          events.map((event) => [age(Date.now() - event.atMs), event.type, event.reason, event.message]),
        )}`,
    agentEvents.length === 0
      ? ''
      : `\nEvents of the agent:\n${table(
          ['LAST SEEN', 'KIND', 'MESSAGE'],
          agentEvents.map(({ atMs, kind, message, count }) => [
            age(Date.now() - atMs),
            kind,
            `${message}${count > 1 ? ` (${count} times)` : ''}`,
          ]),
        )}`,
  ].join('');
}

function containerText({ name, requested, gpus, allocation }: GpuContainer): string {
  const memory =
    requested.memoryBlocks === 0 ? 'all memory' : `${gib(requested.memoryBlocks * MEMORY_BLOCK_BYTES)} GiB`;
  const head = `\nContainer ${printable(name)}: asks for ${requested.cores} cores, ${memory}\n`;
  if (allocation === null)
    return `${head}  ${gpus.length === 0 ? 'no GPU yet' : `GPU ${gpus.join(', ')}, no figures`}\n`;
  const slices = table(
    ['GPU', 'CORES', 'UP TO', 'PRIORITY', 'MEMORY', 'PEAK', 'THROTTLED', 'PIDS', 'UUID'],
    allocation.slices.map((slice) => [
      String(slice.gpuIndex),
      `${slice.usedPercent.toFixed(0)}/${slice.share}`,
      slice.softLimit === null ? '-' : String(slice.softLimit),
      slice.priority ?? 'normal',
      `${gib(slice.usedMemoryBytes)}${slice.hostBackedBytes === 0 ? '' : `+${gib(slice.hostBackedBytes)}`}/${gib(slice.memoryLimitBytes ?? slice.gpuMemoryBytes)} GiB`,
      slice.peakMemoryBytes === null ? '-' : `${gib(slice.peakMemoryBytes)} GiB`,
      slice.counters === null ? '-' : `${slice.counters.throttledSeconds.toFixed(1)} s`,
      slice.pids.join(',') || '-',
      slice.gpuUuid,
    ]),
  );
  const notes = [
    `allocation ${allocation.id}, ${allocation.phase} ${age(Date.now() - allocation.allocatedAtMs)} ago`,
    ...(allocation.unenforced ? ['its limits are not enforced'] : []),
    ...allocation.findings.map(({ code, message }) => `finding ${code}: ${message}`),
  ];
  return `${head}${indented(slices)}${notes.map((note) => `  ${printable(note)}\n`).join('')}`;
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gmu, '  ');
}
