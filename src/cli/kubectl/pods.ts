import type { Command } from 'commander';
import { MEMORY_BLOCK_BYTES } from '../../gpu/resources.js';
import type { Pod } from '../../kube/pod.js';
import { age, gib } from '../terminal-text.js';
import { idleOf, lastUsedText } from './idle.js';
import { listCommand, withCluster, type NamespaceOptions } from './cluster-command.js';
import { slicesOf, type GpuPod } from './gpu-cluster.js';
import { printListing, type Listing, type ListingOptions, type ListingRow } from './listing.js';
import { selection } from './selection.js';
import { suspensionText } from './suspension-text.js';

/** `kubectl gpu pods`: the pods with GPUs, and the waiting ones with the reason. */
export function podsCommand(): Command {
  return listCommand('pods', { hasNames: true })
    .description('list the pods with GPUs: which GPUs, what they may use and what they use; why the others wait')
    .argument('[names...]', 'only these pods')
    .action((names: readonly string[], options: NamespaceOptions & ListingOptions) =>
      withCluster(options, ({ cluster, namespace }) =>
        printListing(options, async () => {
          cluster.refresh();
          const { pods, problems } = await cluster.pods(namespace, options.selector ?? null);
          return { ...listing(selectedPods(pods, names, namespace), namespace), problems };
        }),
      ),
    );
}

/** The pods with these names, or all. Throws if one asks for no GPU; `namespace` is that of the pods, null for all. */
export function selectedPods(
  pods: readonly GpuPod[],
  names: readonly string[],
  namespace: string | null,
): readonly GpuPod[] {
  const place = namespace === null ? 'any namespace' : `namespace ${namespace} (-A for all)`;
  return selection(
    pods,
    names,
    ({ pod }) => pod.name,
    (missing) => `no pod with GPUs is called ${missing} in ${place}`,
  );
}

/** The state of a pod in one word, as kubectl prints it. */
export function stateOf({ isLeaving, reason, phase, node, isGated, unscheduled }: Pod): string {
  if (isLeaving) return 'Terminating';
  if (reason !== '') return reason;
  if (isGated) return 'SchedulingGated';
  return phase === 'Pending' && node === null && unscheduled !== '' ? 'Unschedulable' : phase;
}

/** Why a pod does not run; empty for one that runs or succeeded. */
export function whyNot({ phase, message, unscheduled, containers, isGated }: Pod): string {
  if (phase === 'Running' || phase === 'Succeeded') return '';
  const waiting = containers.map((container) => container.waiting).find((reason) => reason !== '') ?? '';
  return message || unscheduled || waiting || (isGated ? 'scheduling gates hold it back' : '');
}

/** The requests of its containers and claims, in sum. */
function requestedOf({ containers, claims }: GpuPod): { readonly cores: number; readonly memoryBytes: number } {
  const asked = claims.map(({ claim }) => claim.asks);
  return {
    cores: sum([...containers.map(({ requested }) => requested.cores), ...asked.map(({ cores }) => cores)]),
    memoryBytes: sum([
      ...containers.map(({ requested }) => requested.memoryBlocks * MEMORY_BLOCK_BYTES),
      ...asked.map(({ memoryBytes }) => memoryBytes),
    ]),
  };
}

/** GPU indexes on its node, of its containers and its claims; none while it has no node. */
function gpusOf({ pod, containers, claims }: GpuPod): readonly number[] {
  const claimed = claims.flatMap(({ devices }) =>
    devices.flatMap(({ node, gpu }) => (gpu === null || node !== pod.node ? [] : [gpu])),
  );
  return [...new Set([...containers.flatMap(({ gpus }) => gpus), ...claimed])].sort((a, b) => a - b);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

function listing(pods: readonly GpuPod[], namespace: string | null): Omit<Listing, 'problems'> {
  const place = namespace === null ? ['NAMESPACE'] : [];
  return {
    headings: [...place, 'NAME', 'STATUS', 'NODE', 'GPU', 'CORES', 'MEMORY', 'LAST USED', 'AGE'],
    wideHeadings: ['THROTTLED', 'PROCESSES', 'GPU UUID', 'CLAIMS', 'WHY'],
    rows: pods.map((pod) => rowOf(pod, namespace === null)),
    kind: 'pod',
    none: namespace === null ? 'no pod asks for GPUs' : `no pod of namespace ${namespace} asks for GPUs (-A for all)`,
  };
}

function rowOf(gpuPod: GpuPod, hasNamespace: boolean): ListingRow {
  const { pod, claims } = gpuPod;
  const slices = slicesOf(gpuPod);
  const requested = requestedOf(gpuPod);
  const why = whyNot(pod);
  const gpus = gpusOf(gpuPod);
  const total = (of: (slice: (typeof slices)[number]) => number): number | null =>
    slices.length === 0 ? null : slices.reduce((sum, slice) => sum + of(slice), 0);
  const idle = idleOf(gpuPod);
  const suspension = gpuPod.containers.find(({ allocation }) => allocation?.suspension)?.allocation?.suspension ?? null;
  const document = {
    namespace: pod.namespace,
    name: pod.name,
    status: stateOf(pod),
    why: why === '' ? null : why,
    node: pod.node,
    gpus,
    claims: claims.map(({ claim }) => claim.name),
    requestedCores: requested.cores,
    requestedMemoryBytes: requested.memoryBytes,
    cores: total(({ share }) => share),
    usedCores: total(({ usedPercent }) => usedPercent),
    memoryBytes: total(({ memoryLimitBytes, gpuMemoryBytes }) => memoryLimitBytes ?? gpuMemoryBytes),
    usedMemoryBytes: total(({ usedMemoryBytes }) => usedMemoryBytes),
    throttledSeconds: total(({ counters }) => counters?.throttledSeconds ?? 0),
    lastUsedMs: idle?.lastUsedMs ?? null,
    suspension,
    processes: total(({ pids }) => pids.length),
    gpuUuids: [...new Set(slices.map(({ gpuUuid }) => gpuUuid))],
  };
  const asked = requested.memoryBytes === 0 ? 'all' : `${gib(requested.memoryBytes)} GiB`;
  return {
    cells: [
      ...(hasNamespace ? [pod.namespace] : []),
      pod.name,
      suspension === null ? document.status : `${document.status}, ${suspension.step}`,
      pod.node ?? '-',
      gpus.join(',') || '-',
      document.cores === null ? `-/${requested.cores}` : `${document.usedCores?.toFixed(0)}/${document.cores}`,
      document.memoryBytes === null
        ? `-/${asked}`
        : `${gib(document.usedMemoryBytes ?? 0)}/${gib(document.memoryBytes)} GiB`,
      lastUsedText(idle, Date.now()),
      pod.createdAt === null ? '-' : age(Date.now() - pod.createdAt),
    ],
    wide: [
      document.throttledSeconds === null ? '-' : `${document.throttledSeconds.toFixed(1)} s`,
      document.processes === null ? '-' : String(document.processes),
      document.gpuUuids.join(',') || '-',
      document.claims.join(',') || '-',
      why || (suspension === null ? '-' : suspensionText(suspension, Date.now())),
    ],
    document,
  };
}
