import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import { readDuration } from '../../quota/internal.js';
import { age, gib } from '../terminal-text.js';
import { listCommand, withCluster, type NamespaceOptions } from './cluster-command.js';
import { slicesOf, type GpuPod } from './gpu-cluster.js';
import { printListing, type ListingOptions, type ListingRow } from './listing.js';

/** Since when a pod has not used its GPUs. */
export interface Idle {
  /** Time of the last use, milliseconds since 1970; null if it never used them. */
  readonly lastUsedMs: number | null;
  /** The last use, or the allocation. */
  readonly sinceMs: number;
}

interface IdleOptions extends NamespaceOptions, ListingOptions {
  readonly for: number;
}

/** Use this recent counts as present: agents look every two seconds, and figures travel. */
const NOW_MS = 10_000;

/** `kubectl gpu idle`: the pods that hold GPUs and do not use them. */
export function idleCommand(): Command {
  return listCommand('idle', { hasNames: true })
    .description('list the pods that hold GPUs and have not used them for a time, the longest first')
    .addOption(
      new Option('--for <duration>', 'unused at least this long: 30m, 1h, 2d')
        .argParser(duration)
        .default(3_600_000, '1h'),
    )
    .action((options: IdleOptions) =>
      withCluster(options, ({ cluster, namespace }) =>
        printListing(options, async () => {
          cluster.refresh();
          const { pods, problems } = await cluster.pods(namespace, options.selector ?? null);
          const now = Date.now();
          const rows = pods
            .flatMap((pod) => {
              const idle = pod.pod.isDone ? null : idleOf(pod);
              return idle === null || now - idle.sinceMs < options.for ? [] : [{ pod, idle }];
            })
            .sort((a, b) => a.idle.sinceMs - b.idle.sinceMs);
          const place = namespace === null ? ['NAMESPACE'] : [];
          return {
            headings: [...place, 'NAME', 'NODE', 'GPU', 'CORES', 'MEMORY', 'LAST USED', 'IDLE FOR'],
            wideHeadings: ['MEMORY USED', 'WORKLOAD'],
            rows: rows.map(({ pod, idle }) => rowOf(pod, idle, namespace === null, now)),
            kind: 'pod',
            none: `no pod has left its GPUs unused for ${age(options.for)}`,
            problems,
          };
        }),
      ),
    );
}

/** Null for a pod without a started container on a GPU, or whose agent does not answer. */
export function idleOf({ containers }: GpuPod): Idle | null {
  const started = containers.flatMap(({ allocation }) => (allocation?.phase === 'started' ? [allocation] : []));
  if (started.length === 0) return null;
  const used = started.flatMap(({ slices }) => slices.flatMap(({ lastUsedMs }) => lastUsedMs ?? []));
  const lastUsedMs = used.length === 0 ? null : Math.max(...used);
  return { lastUsedMs, sinceMs: lastUsedMs ?? Math.max(...started.map(({ allocatedAtMs }) => allocatedAtMs)) };
}

/** When a pod used its GPUs last, in words. */
export function lastUsedText(idle: Idle | null, now: number): string {
  if (idle === null) return '-';
  if (idle.lastUsedMs === null) return 'never';
  return now - idle.lastUsedMs < NOW_MS ? 'now' : `${age(now - idle.lastUsedMs)} ago`;
}

/** A duration of at least a minute on the command line, in milliseconds. */
export function duration(text: string): number {
  const ms = readDuration(text);
  if (!(ms >= 60_000)) throw new InvalidArgumentError('Expected a duration of at least 1m, such as 30m, 1h or 2d.');
  return ms;
}

function rowOf(gpuPod: GpuPod, idle: Idle, hasNamespace: boolean, now: number): ListingRow {
  const { pod } = gpuPod;
  const slices = slicesOf(gpuPod);
  const total = (of: (slice: (typeof slices)[number]) => number): number =>
    slices.reduce((sum, slice) => sum + of(slice), 0);
  const document = {
    namespace: pod.namespace,
    name: pod.name,
    node: pod.node,
    gpus: slices.map(({ gpuIndex }) => gpuIndex),
    cores: total(({ allocatedCores }) => allocatedCores),
    memoryBytes: total(({ allocatedMemoryBytes, gpuMemoryBytes }) => allocatedMemoryBytes ?? gpuMemoryBytes),
    usedMemoryBytes: total(({ usedMemoryBytes }) => usedMemoryBytes),
    lastUsedMs: idle.lastUsedMs,
    idleSeconds: Math.floor((now - idle.sinceMs) / 1000),
    workload: pod.controller === null ? null : `${pod.controller.kind}/${pod.controller.name}`,
  };
  return {
    cells: [
      ...(hasNamespace ? [pod.namespace] : []),
      pod.name,
      pod.node ?? '-',
      document.gpus.join(',') || '-',
      String(document.cores),
      `${gib(document.memoryBytes)} GiB`,
      lastUsedText(idle, now),
      age(now - idle.sinceMs),
    ],
    wide: [`${gib(document.usedMemoryBytes)} GiB`, document.workload ?? '-'],
    document,
  };
}
