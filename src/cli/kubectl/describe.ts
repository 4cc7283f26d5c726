import type { Command } from 'commander';
import type { JournalEntry } from '../../agent/node/journal.js';
import { claimRow } from '../../console/claim-row.js';
import {
  CORE_LIMIT_KEY,
  CPU_AFFINITY_KEY,
  ENFORCEMENT_KEY,
  MEMORY_LIMIT_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  PRIORITY_KEY,
  SHARE_LIMIT_KEY,
  SUSPEND_IDLE_KEY,
  SUSPEND_KEY,
} from '../../gpu/annotations.js';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import { eventsPath, podPath } from '../../kube/api-path.js';
import { KubeError } from '../../kube/failure.js';
import { list, record } from '../../kube/json.js';
import { listAll } from '../../kube/list-all.js';
import { readPod } from '../../kube/pod.js';
import { outputOption, print, type Output } from '../output.js';
import { SELECTION_KEYS } from '../../gpu/gpu-selection.js';
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
import { gonePod, gonePodText } from './describe-gone.js';
import { describeNode, nodeDocument, nodeText } from './describe-node.js';
import type { GpuClaim, GpuContainer, GpuPod } from './gpu-cluster.js';
import { stateOf, whyNot } from './pods.js';
import { suspensionText } from './suspension-text.js';

const ANNOTATIONS = [
  MEMORY_LIMIT_KEY,
  SHARE_LIMIT_KEY,
  CORE_LIMIT_KEY,
  PRIORITY_KEY,
  MEMORY_OVERSUBSCRIBE_KEY,
  ENFORCEMENT_KEY,
  SUSPEND_KEY,
  SUSPEND_IDLE_KEY,
  ...SELECTION_KEYS,
  CPU_AFFINITY_KEY,
];

/** `kubectl gpu describe POD`: everything that is known about the GPUs of one pod, or of a node. */
export function describeCommand(): Command {
  return refuseOptions(clusterCommand('describe'), {
    watch: 'it describes a pod once; kubectl gpu pods POD -w follows it',
    selector: 'name one pod; kubectl gpu pods -l lists those with labels',
    allNamespaces: 'name one pod, and its namespace with -n',
  })
    .description(
      "describe a pod's GPUs: requests, limits and use of its containers, its claims, why it waits, findings and events; or a node's: allocations, health, and what enforces each limit; of a pod that is gone what the agents remember",
    )
    .argument('<pod>', 'name of a pod, pod/name, or node/name')
    .addOption(namespaceOption())
    .addOption(outputOption())
    .action((name: string, options: NamespaceOptions & { readonly output: Output }) =>
      withCluster(options, async (open) => {
        const node = /^nodes?\/(.+)$/u.exec(name)?.[1];
        if (node !== undefined) {
          const found = await describeNode(open.cluster, node);
          await print(options.output, { document: () => nodeDocument(found), table: () => nodeText(found) });
          return;
        }
        const pod = name.replace(/^pods?\//u, '');
        const described = await describe(open, pod);
        if (described === null) {
          const place = open.namespace ?? 'default';
          const gone = await gonePod(open.cluster, place, pod);
          if (gone === null)
            throw new Error(`no pod ${pod} in namespace ${place} (-n for another), and no agent remembers one`);
          await print(options.output, { document: () => gone, table: () => gonePodText(gone) });
          return;
        }
        await print(options.output, { document: () => documentOf(described), table: () => textOf(described) });
      }),
    );
}

/** A pod, its events at the API server, and the events of its agent. */
interface Described {
  readonly gpuPod: GpuPod;
  /** Why figures are missing. */
  readonly problems: readonly string[];
  readonly events: readonly ClusterEvent[];
  readonly agentEvents: readonly JournalEntry[];
}

/** Null if the API server has no such pod. */
async function describe({ cluster, namespace }: OpenCluster, name: string): Promise<Described | null> {
  const place = namespace ?? 'default';
  const answer = await cluster.api.request({ method: 'GET', path: podPath(place, name) });
  if (!answer.ok) {
    if (answer.code === 'not-found') return null;
    throw new KubeError(`pod ${place}/${name}`, answer);
  }
  const pod = readPod(answer.body);
  const [{ gpuPod, problems }, events] = await Promise.all([
    cluster.podWithFigures(pod),
    listAll(cluster.api, 'events', eventsPath(place), { fieldSelector: `involvedObject.name=${name}` }).then(
      (objects) => objects.map(readEvent).filter(({ uid }) => uid === '' || uid === pod.uid),
      () => [],
    ),
  ]);
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
    problems: [...problems.values()],
    events: events.sort((a, b) => a.atMs - b.atMs),
    agentEvents: agentEvents.sort((a, b) => a.sequence - b.sequence),
  };
}

function documentOf({ gpuPod: { pod, containers, claims }, problems, events, agentEvents }: Described): object {
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    node: pod.node,
    status: stateOf(pod),
    why: whyNot(pod) || null,
    annotations: annotationsOf(pod.annotations),
    problem: problems.join('; ') || null,
    claims: claims.map(({ claim, devices }) => claimRow(claim, devices, whyNot(pod) || null)),
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

function textOf({ gpuPod: { pod, containers, claims }, problems, events, agentEvents }: Described): string {
  const why = whyNot(pod);
  const annotations = Object.entries(annotationsOf(pod.annotations)).map(([key, value]) => `${key}=${value}`);
  const fields: readonly (readonly [string, string])[] = [
    ['Name', pod.name],
    ['Namespace', pod.namespace],
    ['Node', pod.node ?? '-'],
    ['Status', stateOf(pod)],
    ...(why === '' ? [] : [['Why', why] as const]),
    ...(annotations.length === 0 ? [] : [['Annotations', annotations.join(', ')] as const]),
    ...problems.map((problem) => ['No figures', problem] as const),
  ];
  return [
    ...fields.map(([name, value]) => `${`${name}:`.padEnd(13)} ${printable(value)}\n`),
    ...(containers.length === 0 && claims.length === 0 && problems.length === 0
      ? ['This pod asks for no GPU.\n']
      : containers.map(containerText)),
    ...claims.map(claimText),
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

function claimText({ claim, devices }: GpuClaim): string {
  const { name, asks } = claim;
  const { state } = claimRow(claim, devices, null);
  return [
    `\nClaim ${printable(name)}: ${state}, asks for ${amountText(asks.cores, asks.memoryBytes)} (${asks.classes.join(', ') || 'no class'})\n`,
    ...devices.map(
      ({ request, device, gpu, cores, memoryBytes }) =>
        `  ${printable(request)}: ${amountText(cores, memoryBytes)} of ${gpu === null ? printable(device) : `GPU ${gpu}`}\n`,
    ),
  ].join('');
}

function amountText(cores: number, memoryBytes: number): string {
  return `${cores} cores, ${memoryBytes === 0 ? 'all memory' : `${gib(memoryBytes)} GiB`}`;
}

function containerText({ name, requested, gpus, allocation }: GpuContainer): string {
  const { cores, memoryBlocks } = requested;
  const asked = cores === 0 ? 'uses claims' : `asks for ${amountText(cores, memoryBlocks * MEMORY_BLOCK_BYTES)}`;
  const head = `\nContainer ${printable(name)}: ${asked}\n`;
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
    ...(allocation.slices.some(({ memoryByDriver }) => memoryByDriver === true)
      ? ['the driver enforces its memory limits too']
      : []),
    ...(allocation.unenforced ? ['its limits are not enforced'] : []),
    ...(allocation.suspension === undefined ? [] : [suspensionText(allocation.suspension, Date.now())]),
    ...allocation.findings.map(({ code, message }) => `finding ${code}: ${message}`),
  ];
  return `${head}${indented(slices)}${notes.map((note) => `  ${printable(note)}\n`).join('')}`;
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gmu, '  ');
}
