import type { GpuSnapshot, NodeSnapshot, SliceSnapshot } from '../agent/display/view.js';
import { age, gib, printable } from './terminal-text.js';
import { containerName } from './usage.js';

export type SortKey = 'cores' | 'memory' | 'throttled';

export interface FrameOptions {
  readonly columns: number;
  readonly rows: number;
  readonly sort: SortKey;
  readonly color: boolean;
  /** The previous sample, from which rates are computed; null at first. */
  readonly before: NodeSnapshot | null;
  /** Percent of use of each GPU in the last samples, by UUID, the latest last. */
  readonly trails: ReadonlyMap<string, readonly number[]>;
}

const BLOCKS = '▁▂▃▄▅▆▇█';
const TRAIL_WIDTH = 20;

/**
 * The screen of `top`: a line for each GPU, then the containers, the busiest first. It fits the terminal's columns and
 * rows.
 */
export function topFrame(snapshot: NodeSnapshot, options: FrameOptions): string[] {
  const { columns, rows, sort } = options;
  const head = `${printable(snapshot.node)}  gpu-manager ${snapshot.version}  driver ${snapshot.driverVersion ?? '-'}  ${new Date(snapshot.atMs).toISOString().slice(11, 19)}`;
  const troubles = [
    ...(snapshot.driverOutage === null ? [] : [`the driver does not answer: ${snapshot.driverOutage}`]),
    ...snapshot.notReady,
  ].map((trouble) => paint(`! ${printable(trouble)}`, 'bad', options));
  const gpus = snapshot.cards.map((gpu) => gpuLine(gpu, snapshot.atMs, options));
  const keys = `q quit   c cores  m memory  t throttled: sorted by ${sort}`;
  const list = containers(snapshot, options);
  const titles = line(['CONTAINER', 'GPU', 'CORES', 'MEMORY', 'THROTTLED', 'PIDS'], columns);
  const room = Math.max(0, rows - 2 - troubles.length - gpus.length - 3);
  const shown = list.slice(0, room);
  const rest = list.length > shown.length ? [`  and ${list.length - shown.length} more`] : [];
  return [
    clip(head, columns),
    ...troubles,
    ...gpus,
    '',
    clip(keys, columns),
    paint(titles, 'quiet', options),
    ...shown,
    ...rest,
  ].slice(0, rows);
}

function gpuLine(gpu: GpuSnapshot, nowMs: number, options: FrameOptions): string {
  const trail = (options.trails.get(gpu.uuid) ?? [])
    .slice(-TRAIL_WIDTH)
    .map((percent) => BLOCKS[Math.min(7, Math.floor((percent / 100) * 8))])
    .join('');
  const profile = gpu.instance === undefined ? '' : ` ${printable(gpu.instance.profile)}`;
  const name = `GPU ${String(gpu.index).padEnd(2)}${profile}`;
  if (gpu.health.status !== 'healthy')
    return paint(
      clip(
        `${name} ${gpu.health.status} for ${age(nowMs - gpu.health.sinceMs)}: ${printable(gpu.health.reason ?? '')}`,
        options.columns,
      ),
      'bad',
      options,
    );
  const wide = options.columns >= 100;
  const width = wide ? 20 : 10;
  const memory =
    gpu.usedMemoryBytes === null
      ? '      -      '
      : `${gib(gpu.usedMemoryBytes)}/${gib(gpu.memoryBytes)} GiB`.padStart(15);
  const rest = [
    gpu.temperatureCelsius === null ? '' : `${gpu.temperatureCelsius} °C`,
    gpu.powerWatts === null ? '' : `${Math.round(gpu.powerWatts)} W`,
  ]
    .map((text) => text.padStart(6))
    .join('');
  const used = gpu.usedPercent === null ? '   -' : `${Math.round(gpu.usedPercent)} %`.padStart(5);
  const parts = [
    name,
    paint(bar((gpu.usedPercent ?? 0) / 100, width), (gpu.usedPercent ?? 0) > 90 ? 'warn' : 'good', options),
    used,
    paint(bar((gpu.usedMemoryBytes ?? 0) / gpu.memoryBytes, width), 'second', options),
    memory,
    ...(options.columns >= 70 ? [`${gpu.givenCores} given`.padStart(9)] : []),
    ...(wide ? [rest, trail] : []),
  ];
  return parts.join(' ');
}

function containers(snapshot: NodeSnapshot, options: FrameOptions): string[] {
  const before = new Map(
    (options.before?.allocations ?? []).flatMap(({ id, slices }) =>
      slices.map((slice) => [`${id}/${slice.gpuUuid}`, slice] as const),
    ),
  );
  const elapsedSeconds = options.before === null ? 0 : (snapshot.atMs - options.before.atMs) / 1000;
  const rows = snapshot.allocations.flatMap((allocation) =>
    allocation.slices.map((slice) => {
      const waited = secondsWaited(slice, before.get(`${allocation.id}/${slice.gpuUuid}`));
      const rate = elapsedSeconds > 0 && waited !== null ? waited / elapsedSeconds : null;
      const limit = slice.memoryLimitBytes ?? slice.gpuMemoryBytes;
      const order: Readonly<Record<SortKey, number>> = {
        cores: slice.usedPercent,
        memory: slice.usedMemoryBytes,
        throttled: rate ?? 0,
      };
      const upTo = slice.softLimit === null ? '' : `-${slice.softLimit}`;
      const priority = slice.priority === undefined ? '' : ` ${slice.priority}`;
      const cells = [
        containerName(allocation),
        String(slice.gpuIndex),
        `${slice.usedPercent.toFixed(0)}/${slice.share}${upTo} %${priority}`,
        `${gib(slice.usedMemoryBytes)}${slice.hostBackedBytes === 0 ? '' : `+${gib(slice.hostBackedBytes)}`}/${gib(limit)} GiB`,
        rate === null ? '-' : `${rate.toFixed(2)} s/s`,
        slice.pids.join(' '),
      ];
      return { order: order[options.sort], name: cells[0] ?? '', text: line(cells, options.columns) };
    }),
  );
  return rows.sort((a, b) => b.order - a.order || a.name.localeCompare(b.name)).map(({ text }) => text);
}

function secondsWaited(now: SliceSnapshot, before: SliceSnapshot | undefined): number | null {
  if (now.counters === null || before === undefined || before.counters === null) return null;
  return Math.max(0, now.counters.throttledSeconds - before.counters.throttledSeconds);
}

/** The name takes the remaining width; numbers have separate columns. */
function line([name = '', ...cells]: readonly string[], columns: number): string {
  const widths = [4, 13, 16, 10];
  const fixed = widths.reduce((sum, width) => sum + width + 1, 0);
  const pids = Math.max(8, Math.min(16, columns - 70));
  const room = Math.max(12, columns - fixed - pids - 1);
  const figures = widths.map((width, at) => (cells[at] ?? '').padStart(width)).join(' ');
  return clip(`${cutMiddle(printable(name), room).padEnd(room)} ${figures} ${cells[4] ?? ''}`, columns).trimEnd();
}

function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Shortens a name in its middle: pods of one workload differ at their end. */
function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  const end = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - end)}…${text.slice(text.length - end)}`;
}

function bar(fraction: number, width: number): string {
  const filled = Math.round(Math.max(0, Math.min(1, fraction)) * width);
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`;
}

const COLORS = { good: 32, warn: 33, bad: 31, second: 35, quiet: 2 } as const;

function paint(text: string, color: keyof typeof COLORS, options: FrameOptions): string {
  return options.color ? `\u001b[${COLORS[color]}m${text}\u001b[0m` : text;
}
