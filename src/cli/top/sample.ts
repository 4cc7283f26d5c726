import type { ProcessDocument } from '../../agent/node/process-document.js';
import type { AllocationSnapshot, NodeSnapshot, SliceSnapshot } from '../../agent/node/view.js';
import { printable } from '../terminal-text.js';
import { containerName } from '../usage.js';

/** One node of a sample. */
export interface NodeSample {
  readonly name: string;
  /** Null if its agent does not answer. */
  readonly snapshot: NodeSnapshot | null;
  /** Why there is no answer; empty otherwise. */
  readonly problem: string;
}

/** The content of `top`: one node, or several. */
export interface Sample {
  readonly atMs: number;
  /** Shown above everything. */
  readonly title: string;
  readonly nodes: readonly NodeSample[];
}

/** One container on one GPU. */
export interface SliceRow {
  /** Identifies it over time. */
  readonly key: string;
  readonly node: string;
  readonly name: string;
  readonly allocation: AllocationSnapshot;
  readonly slice: SliceSnapshot;
  /** Seconds per second that it was throttled since the sample before; null at first. */
  readonly throttled: number | null;
}

/** The source of the samples of `top`. */
export interface SampleSource {
  /** The state now, or why nothing answers. */
  sample(): Promise<{ readonly ok: true; readonly sample: Sample } | { readonly ok: false; readonly reason: string }>;
  /** The processes of one container; null if this source does not tell more than pids, with the reason. */
  processes(row: SliceRow): Promise<Processes>;
}

/** Processes of a container, or why only their pids are known. */
export type Processes =
  { readonly known: true; readonly document: ProcessDocument } | { readonly known: false; readonly reason: string };

/** All slices of a sample, in the order of nodes and allocations. */
export function sliceRows(sample: Sample, before: Sample | null): SliceRow[] {
  const earlier = new Map(before === null ? [] : slicesOf(before).map((row) => [row.key, row.slice] as const));
  const elapsedSeconds = before === null ? 0 : (sample.atMs - before.atMs) / 1000;
  return slicesOf(sample).map((row) => {
    const waited = secondsWaited(row.slice, earlier.get(row.key));
    return { ...row, throttled: elapsedSeconds > 0 && waited !== null ? waited / elapsedSeconds : null };
  });
}

function slicesOf({ nodes }: Sample): Omit<SliceRow, 'throttled'>[] {
  return nodes.flatMap(({ name: node, snapshot }) =>
    (snapshot?.allocations ?? []).flatMap((allocation) =>
      allocation.slices.map((slice) => ({
        key: `${node}/${allocation.id}/${slice.gpuUuid}`,
        node: printable(node),
        name: printable(containerName(allocation)),
        allocation,
        slice,
      })),
    ),
  );
}

function secondsWaited(now: SliceSnapshot, before: SliceSnapshot | undefined): number | null {
  if (now.counters === null || before === undefined || before.counters === null) return null;
  return Math.max(0, now.counters.throttledSeconds - before.counters.throttledSeconds);
}

/** Sort keys of slices: figures from the highest, names and GPUs from the lowest. */
export type SortKey = 'cores' | 'memory' | 'throttled' | 'name' | 'gpu';

const FIGURES: Readonly<Record<'cores' | 'memory' | 'throttled', (row: SliceRow) => number>> = {
  cores: ({ slice }) => slice.usedPercent,
  memory: ({ slice }) => slice.usedMemoryBytes,
  throttled: ({ throttled }) => throttled ?? 0,
};

export function sorted(rows: readonly SliceRow[], sort: SortKey, reversed: boolean): SliceRow[] {
  const byGpu = (a: SliceRow, b: SliceRow): number =>
    compareNames(a.node, b.node) || a.slice.gpuIndex - b.slice.gpuIndex;
  const byName = (a: SliceRow, b: SliceRow): number => compareNames(a.name, b.name);
  const first =
    sort === 'name'
      ? byName
      : sort === 'gpu'
        ? byGpu
        : (a: SliceRow, b: SliceRow): number => FIGURES[sort](b) - FIGURES[sort](a);
  const direction = reversed ? -1 : 1;
  return [...rows].sort(
    (a, b) => direction * first(a, b) || byName(a, b) || byGpu(a, b) || (a.key < b.key ? -1 : Number(a.key > b.key)),
  );
}

const NAMES = new Intl.Collator('en', { numeric: true });

function compareNames(a: string, b: string): number {
  return NAMES.compare(a, b);
}

/** Whether every word of the filter occurs in one of the texts; case does not matter. */
export function matches(filter: string, texts: readonly string[]): boolean {
  const haystack = texts.join(' ').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => haystack.includes(word));
}

/** The texts of a slice that a filter searches; `gpu3` means GPU 3. */
export function textsOf({ node, name, slice }: SliceRow): readonly string[] {
  return [name, node, `gpu${slice.gpuIndex}`, slice.priority ?? ''];
}
