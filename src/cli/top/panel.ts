import type { GpuSnapshot, NodeSnapshot } from '../../agent/node/view.js';
import { age, gib, printable } from '../terminal-text.js';
import { cutLine, cutMiddle, fillLine, padEnd, type Line, type Span, type Style } from './text.js';
import type { NodeSample } from './sample.js';

const BLOCKS = '▁▂▃▄▅▆▇█';
const TRAIL_WIDTH = 20;
const SEPARATOR = 2;

/** GPUs beside each other, and the width that each of them then needs. */
const ARRANGEMENTS: readonly (readonly [beside: number, width: number])[] = [
  [1, 0],
  [2, 38],
  [4, 18],
  [6, 18],
  [8, 18],
];

/**
 * The GPUs of a node, in as few lines as they need to be at most `most`: beside each other, with fewer figures. Without
 * room for all of them, a line counts the rest.
 */
export function gpuPanel(
  { gpus, atMs }: NodeSnapshot,
  trails: ReadonlyMap<string, readonly number[]>,
  chosen: string | null,
  columns: number,
  most: number,
): Line[] {
  return arranged(
    gpus.map((gpu) => (width) => gpuLine(gpu, trails.get(gpu.uuid) ?? [], atMs, gpu.uuid === chosen, width)),
    columns,
    most,
    'GPUs',
  );
}

/** The nodes of a cluster: their GPUs in sum. */
export function nodePanel(nodes: readonly NodeSample[], chosen: string | null, columns: number, most: number): Line[] {
  return arranged(
    nodes.map((node) => (width) => nodeLine(node, printable(node.name) === chosen, width)),
    columns,
    most,
    'nodes',
  );
}

function arranged(cells: readonly ((width: number) => Line)[], columns: number, most: number, what: string): Line[] {
  const widthOf = (beside: number): number => Math.floor((columns - (beside - 1) * SEPARATOR) / beside);
  const possible = ARRANGEMENTS.filter(([beside, width]) => widthOf(beside) >= width).map(([beside]) => beside);
  const beside = possible.find((count) => Math.ceil(cells.length / count) <= most) ?? possible.at(-1) ?? 1;
  const lines = Math.ceil(cells.length / beside);
  const shown = lines <= most ? lines : Math.max(0, most - 1);
  const width = widthOf(beside);
  // The cells fill a column from top to bottom, then the next column.
  const drawn = Array.from({ length: shown }, (_, at): Line => {
    const here = Array.from({ length: beside }, (__, column) => cells[at + column * shown]).filter(
      (cell) => cell !== undefined,
    );
    return here.flatMap((cell, column): Line => [
      ...(column === 0 ? [] : [{ text: ' '.repeat(SEPARATOR) }]),
      ...(beside === 1 ? cell(width) : fillLine(cell(width), width)),
    ]);
  });
  const rest = cells.length - Math.min(cells.length, shown * beside);
  return [
    ...drawn,
    ...(rest > 0 && most > 0 ? [[{ text: `  and ${rest} more ${what}`, style: 'quiet' } as const]] : []),
  ];
}

function gpuLine(gpu: GpuSnapshot, trail: readonly number[], nowMs: number, isChosen: boolean, width: number): Line {
  const small = width < 38;
  const profile = gpu.instance === undefined || small ? '' : ` ${printable(gpu.instance.profile)}`;
  const name: Span = {
    text: small ? String(gpu.index).padStart(3) : `GPU ${String(gpu.index).padEnd(2)}${profile}`,
    style: isChosen ? 'strong' : undefined,
  };
  if (gpu.health.status !== 'healthy') {
    const since = small ? '' : ` for ${age(nowMs - gpu.health.sinceMs)}: ${printable(gpu.health.reason ?? '')}`;
    return cutLine([{ text: `${name.text} ${gpu.health.status}${since}`, style: 'bad' }], width);
  }
  const used = gpu.usedPercent ?? 0;
  const style: Style = used > 90 ? 'warn' : 'good';
  if (small) {
    const memory = gpu.usedMemoryBytes === null ? '-' : `${Math.round((gpu.usedMemoryBytes / gpu.memoryBytes) * 100)}%`;
    const percent = gpu.usedPercent === null ? '-' : `${Math.round(gpu.usedPercent)}%`;
    return cutLine(
      [
        name,
        { text: ' ' },
        { text: bar(used / 100, Math.max(1, width - 14)), style },
        { text: percent.padStart(5) },
        { text: memory.padStart(5), style: 'second' },
      ],
      width,
    );
  }
  const wide = width >= 100;
  const barWidth = wide ? 18 : 10;
  const memory =
    gpu.usedMemoryBytes === null
      ? '      -      '
      : `${gib(gpu.usedMemoryBytes)}/${gib(gpu.memoryBytes)} GiB`.padStart(15);
  const percent = gpu.usedPercent === null ? '   -' : `${Math.round(gpu.usedPercent)} %`.padStart(5);
  const space = { text: ' ' };
  const rest = [
    gpu.temperatureCelsius === null ? '' : `${gpu.temperatureCelsius} °C`,
    gpu.powerWatts === null ? '' : `${Math.round(gpu.powerWatts)} W`,
  ]
    .map((text) => text.padStart(6))
    .join('');
  return cutLine(
    [
      name,
      space,
      { text: bar(used / 100, barWidth), style },
      { text: ` ${percent} ` },
      ...(width >= 55
        ? [{ text: bar((gpu.usedMemoryBytes ?? 0) / gpu.memoryBytes, barWidth), style: 'second' as const }, space]
        : []),
      { text: memory },
      ...(width >= 70 ? [{ text: ` ${`${gpu.allocatedCores} allocated`.padStart(13)}` }] : []),
      ...(wide ? [{ text: ` ${rest} ${trailOf(trail)}` }] : []),
    ],
    width,
  );
}

function nodeLine({ name, snapshot, problem }: NodeSample, isChosen: boolean, width: number): Line {
  const nameWidth = Math.max(4, Math.min(24, width - 24));
  const title: Span = {
    text: padEnd(cutMiddle(printable(name), nameWidth), nameWidth),
    style: isChosen ? 'strong' : undefined,
  };
  if (snapshot === null) return cutLine([{ text: `${title.text} ${printable(problem)}`, style: 'bad' }], width);
  const known = snapshot.gpus.flatMap(({ usedPercent }) => usedPercent ?? []);
  const used = known.length === 0 ? null : known.reduce((sum, percent) => sum + percent, 0) / known.length;
  const memory = sum(snapshot.gpus.map(({ usedMemoryBytes }) => usedMemoryBytes ?? 0));
  const all = sum(snapshot.gpus.map(({ memoryBytes }) => memoryBytes));
  return cutLine(
    [
      title,
      { text: `${snapshot.gpus.length} GPUs`.padStart(8) },
      { text: (used === null ? '-' : `${Math.round(used)} %`).padStart(6) },
      { text: ' ' },
      { text: bar((used ?? 0) / 100, 8), style: 'good' },
      { text: ` ${gib(memory)}/${gib(all)} GiB` },
    ],
    width,
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function trailOf(trail: readonly number[]): string {
  return trail
    .slice(-TRAIL_WIDTH)
    .map((percent) => BLOCKS[Math.min(7, Math.floor((percent / 100) * 8))])
    .join('');
}

function bar(fraction: number, width: number): string {
  const filled = Math.round(Math.max(0, Math.min(1, fraction)) * width);
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`;
}
