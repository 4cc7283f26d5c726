import { gib, printable } from '../terminal-text.js';
import { gpuPanel, nodePanel, trailOf } from './panel.js';
import { windowStart } from './list.js';
import type { SliceRow } from './sample.js';
import {
  listOf,
  podOf,
  processesOf,
  shownProcesses,
  shownSlices,
  type OpenSlice,
  type ProcessRow,
  type Targets,
  type TopState,
} from './state.js';
import { lineOf, tableOf, titlesOf, type Column, type Table, type Titles } from './table.js';
import { columnsOf, cut, cutLine, cutMiddle, fillLine, padEnd, wrap, type Line, type Span } from './text.js';

/** Size of a terminal. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A drawing of the state: at most as many lines as the terminal has rows, each at most as wide as the terminal. */
export interface Frame {
  readonly lines: readonly Line[];
  readonly targets: Targets;
}

/** The part of the height that the figures of the GPUs may take. */
const PANEL_PART = 1 / 3;
/** Number of problems that are shown one by one. */
const MAX_TROUBLES = 3;

/** Draws the state. */
export function frameOf(state: TopState, size: Size): Frame {
  const { columns, rows } = size;
  const body = state.showsHelp
    ? helpBody(columns)
    : state.open === null
      ? slicesBody(state, size)
      : processesBody(state, state.open, size);
  const foot = rows >= 3 && rows !== Infinity ? [footer(state, body, columns)] : [];
  // A terminal with few rows shows the list rather than what stands above it.
  const least = Math.min(body.rows.length, Math.max(1, Math.floor(rows / 4)));
  const old = state.outage === null ? (line: Line): Line => line : stale;
  const above = [headline(state, columns), ...troubles(state, columns), ...body.above.map(old)];
  const titles = rows >= 4 && body.titles !== null ? [old(fillLine(body.titles.line, columns))] : [];
  const room = rows - foot.length - titles.length;
  const details = body.below.slice(0, Math.max(0, Math.min(body.below.length, room - above.length - least)));
  const kept = above.slice(0, Math.max(0, Math.min(above.length, room - details.length - least)));
  const height = Math.max(0, Math.min(body.rows.length, room - details.length - kept.length));
  const list = listOf(state);
  // In a tree, other rows stand between those that can be selected.
  const index = list.key === null ? -1 : body.rows.findIndex(({ key }) => key === list.key);
  const offset = state.showsHelp ? 0 : windowStart({ ...list, index }, body.rows.length, height);
  const window = body.rows.slice(offset, offset + height);
  const first = kept.length + titles.length;
  const gap = rows === Infinity ? 0 : Math.max(0, room - details.length - kept.length - window.length);
  const lines = [
    ...kept,
    ...titles,
    ...window.map(({ key, draw }) => (key !== null && key === list.key ? selected(draw(), columns) : old(draw()))),
    ...Array.from({ length: gap }, (): Line => []),
    ...details.map(old),
    ...foot,
  ].map((line) => cutLine(line, columns));
  return {
    lines,
    targets: {
      offset,
      page: Math.max(1, height - 1),
      rows: new Map(window.flatMap(({ key }, at) => (key === null ? [] : [[first + at, key] as const]))),
      titles: titles.length === 0 ? null : { line: kept.length, columns: body.titles?.targets ?? [] },
    },
  };
}

/** The lines between the head and the last line. */
interface Body {
  readonly above: readonly Line[];
  readonly titles: Titles | null;
  /** Only those in the window are drawn. */
  readonly rows: readonly { readonly key: string | null; readonly draw: () => Line }[];
  readonly below: readonly Line[];
  /** Number of rows, for the last line. */
  readonly total: number;
  readonly hint: string;
}

function selected(line: Line, columns: number): Line {
  return fillLine(line, columns).map(({ text }) => ({ text, style: 'selected' }));
}

/** Old figures are grey. */
function stale(line: Line): Line {
  return line.map(({ text }) => ({ text, style: 'quiet' }));
}

function headline({ sample, outage }: TopState, columns: number): Line {
  if (sample === null) return [];
  const time = `${outage === null ? '' : 'as of '}${new Date(sample.atMs).toISOString().slice(11, 19)} UTC`;
  const room = Math.max(0, columns - time.length - 2);
  const title = padEnd(cut(printable(sample.title), room), room);
  return cutLine([{ text: title }, { text: `  ${time}`, style: outage === null ? undefined : 'bad' }], columns);
}

function troubles({ sample, outage }: TopState, columns: number): Line[] {
  if (outage !== null) return [cutLine([{ text: `! ${outage}`, style: 'bad' }], columns)];
  const all = (sample?.nodes ?? []).flatMap(({ name, snapshot, problem }) => {
    const of = (sample?.nodes.length ?? 0) > 1 ? `${name}: ` : '';
    return [
      ...(snapshot === null ? [problem] : []),
      ...(snapshot === null || snapshot.driverOutage === null
        ? []
        : [`the driver does not answer: ${snapshot.driverOutage}`]),
      ...(snapshot?.notReady ?? []),
    ].map((trouble) => `! ${printable(of)}${printable(trouble)}`);
  });
  const more = all.length - MAX_TROUBLES;
  return [...all.slice(0, MAX_TROUBLES), ...(more > 0 ? [`! and ${more} more problems`] : [])].map((text) =>
    cutLine([{ text, style: 'bad' }], columns),
  );
}

function footer(state: TopState, { rows, total, hint }: Body, columns: number): Line {
  const list = listOf(state);
  if (state.typing)
    return [
      { text: 'Filter: ' },
      { text: list.filter, style: 'strong' },
      { text: '█' },
      ...quiet('  Enter keeps it, Esc clears it'),
    ];
  const hidden = list.wanted !== null && list.key !== list.wanted ? hiddenName(state, list.wanted) : null;
  const notice = state.notice ?? (hidden === null ? null : `${hidden} is hidden by the filter`);
  const shown = rows.filter(({ key }) => key !== null).length;
  const count = list.filter === '' ? `${total}` : `${shown} of ${total}`;
  const filter = list.filter === '' ? [] : [{ text: '  /' }, { text: list.filter, style: 'strong' as const }];
  const said: Line = notice === null ? quiet(`  ${hint}`) : [{ text: `  ${notice}`, style: 'warn' }];
  return cutLine([{ text: state.showsHelp ? '' : count }, ...(state.showsHelp ? [] : filter), ...said], columns);
}

function hiddenName(state: TopState, key: string): string {
  return state.open === null ? (state.slices.find((row) => row.key === key)?.name ?? key) : `process ${key}`;
}

function quiet(text: string): Line {
  return [{ text, style: 'quiet' }];
}

const GPU: Column = { title: 'GPU', width: 4, sort: 'gpu' };
const CORES: Column = { title: 'CORES', width: 13, sort: 'cores' };
const MEMORY: Column = { title: 'MEMORY', width: 16, sort: 'memory' };
const THROTTLED: Column = { title: 'THROTTLED', width: 10, sort: 'throttled' };
const PROCESSES: Column = { title: 'PROCS', width: 5 };
/** Use of what the container may use, in the last samples. */
const HISTORY: Column = { title: 'HISTORY', width: 14, left: true };
/** The column of lists in which no row can be opened. */
const PIDS: Column = { title: 'PIDS', width: 16, left: true };
/** Narrow terminals show fewer columns rather than shorter names. */
const MIN_NAME = 24;
const MAX_NODE = 24;

function slicesBody(state: TopState, { columns, rows: height }: Size): Body {
  const rows = shownSlices(state);
  const nodes = state.sample?.nodes ?? [];
  const several = nodes.length > 1;
  const node: Column = {
    title: 'NODE',
    width: Math.min(MAX_NODE, Math.max(4, ...nodes.map(({ name }) => columnsOf(printable(name))))),
    left: true,
  };
  const table = tableOf(
    { title: 'CONTAINER', width: MIN_NAME, left: true, sort: 'name' },
    [
      ...(several ? [node] : []),
      GPU,
      CORES,
      MEMORY,
      THROTTLED,
      ...(height === Infinity ? [PIDS] : [PROCESSES, HISTORY]),
    ],
    columns,
  );
  const snapshot = nodes[0]?.snapshot ?? null;
  const most = height === Infinity ? Infinity : Math.floor(height * PANEL_PART);
  const chosen = state.slices.find(({ key }) => key === state.list.key);
  const panel =
    !state.showsGpus || (several ? nodes.length === 0 : snapshot === null)
      ? []
      : several
        ? nodePanel(nodes, chosen?.node ?? null, columns, most)
        : snapshot === null
          ? []
          : gpuPanel(snapshot, state.trails, chosen?.slice.gpuUuid ?? null, columns, most);
  return {
    above: panel,
    titles: titlesOf(table, state),
    rows: orNote(
      rows.flatMap((row, at) => [
        ...(state.showsTree && (at === 0 || podOf(row) !== podOf(rows[at - 1] ?? row)) ? [podLine(row, table)] : []),
        {
          key: row.key,
          draw: () => {
            const { pids } = row.slice;
            const place = several ? [cutMiddle(row.node, node.width)] : [];
            const last = height === Infinity ? pids.join(' ') : String(pids.length);
            const history = trailOf((state.sliceTrails.get(row.key) ?? []).slice(-HISTORY.width));
            const name = state.showsTree ? `  ${row.name.replace(/^[^ ]*\//u, '')}` : row.name;
            return lineOf(table, [name, ...place, ...figures(row), last, history]);
          },
        },
        ...(state.showsTree ? processLines(row, state, table, several) : []),
      ]),
      state.slices.length === 0 ? 'no container has a slice' : 'no container matches the filter',
    ),
    below: [],
    total: state.slices.length,
    hint: 'Enter processes  v tree  / filter  c m t n u sort  ? help  q quit',
  };
}

/** The pod above its containers in a tree. */
function podLine(row: SliceRow, table: Table): Body['rows'][number] {
  const name = podOf(row).slice(row.node.length + 1);
  return { key: null, draw: () => lineOf(table, [{ text: printable(name), style: 'strong' }]) };
}

/** The processes below a container in a tree. */
function processLines(row: SliceRow, { processes }: TopState, table: Table, several: boolean): Body['rows'] {
  return processesOf(row, processes.get(row.key) ?? null).map((process) => ({
    key: null,
    draw: () => {
      const { pid, user, uid, usedPercent, usedMemoryBytes } = process;
      const who = user ?? (uid === null ? '' : String(uid));
      const what = [String(pid), who, process.command ?? ''].filter((text) => text !== '').map(printable);
      const percent = usedPercent === null ? '' : `${usedPercent.toFixed(0)} %`;
      const memory = usedMemoryBytes === null ? '' : `${gib(usedMemoryBytes)} GiB`;
      const cells = [`    ${what.join(' ')}`, ...(several ? [''] : []), '', percent, memory];
      return lineOf(
        table,
        cells.map((text) => ({ text, style: 'quiet' as const })),
      );
    },
  }));
}

/** The rows, or one line that says why there are none. */
function orNote(rows: Body['rows'], note: string): Body['rows'] {
  return rows.length > 0 ? rows : [{ key: null, draw: () => quiet(note) }];
}

function figures(row: SliceRow): readonly (string | Span)[] {
  const { slice, throttled } = row;
  const limit = slice.memoryLimitBytes ?? slice.gpuMemoryBytes;
  return [
    String(slice.gpuIndex),
    coresText(slice),
    `${gib(slice.usedMemoryBytes)}${slice.hostBackedBytes === 0 ? '' : `+${gib(slice.hostBackedBytes)}`}/${gib(limit)} GiB`,
    throttled === null ? '-' : { text: `${throttled.toFixed(2)} s/s`, style: throttled > 0.01 ? 'warn' : undefined },
  ];
}

function coresText({ usedPercent, share, softLimit, priority }: SliceRow['slice']): string {
  const upTo = softLimit === null ? '' : `-${softLimit}`;
  return `${usedPercent.toFixed(0)}/${share}${upTo} %${priority === undefined ? '' : ` ${priority}`}`;
}

function processesBody(state: TopState, open: OpenSlice, { columns, rows: height }: Size): Body {
  const rows = shownProcesses(open);
  const { row, processes, ended } = open;
  const { slice } = row;
  const limit = slice.memoryLimitBytes ?? slice.gpuMemoryBytes;
  const known = processes?.known === true ? processes.document : null;
  const figuresText = `GPU ${slice.gpuIndex}  cores ${coresText(slice)}  memory ${gib(slice.usedMemoryBytes)}/${gib(limit)} GiB`;
  const command: Column = { title: 'COMMAND', width: MIN_NAME, left: true };
  const table = tableOf(command, PROCESS_COLUMNS, columns, true);
  const chosen = rows.find(({ key }) => key === open.list.key);
  const lines = Math.max(1, Math.floor((height === Infinity ? 24 : height) * PANEL_PART));
  const full = chosen === undefined ? [] : wrap(commandOf(chosen.process), columns, lines);
  return {
    above: [
      [{ text: cutMiddle(row.name, columns), style: 'strong' }],
      ended ? [{ text: `has ended; last: ${figuresText}`, style: 'warn' }] : [{ text: figuresText }],
      ...(processes?.known === false ? wrap(printable(processes.reason), columns, 3).map(quiet) : []),
      ...(known !== null && known.omitted > 0 ? [quiet(`and ${known.omitted} more processes`)] : []),
      [],
    ],
    titles: titlesOf(table, state),
    rows: orNote(
      rows.map((one) => ({ key: one.key, draw: () => lineOf(table, processCells(one)) })),
      open.list.filter === '' ? 'no process of this container uses the GPU' : 'no process matches the filter',
    ),
    below: full.length === 0 ? [] : [[], ...full.map((text): Line => [{ text }])],
    total: shownProcesses({ ...open, list: { ...open.list, filter: '' } }).length,
    hint: 'Esc back  / filter  arrows: whole command  ? help  q quit',
  };
}

const PROCESS_COLUMNS: readonly Column[] = [
  { title: 'PID', width: 8 },
  { title: 'USER', width: 10, left: true },
  { title: 'MEMORY', width: 10 },
  { title: 'GPU %', width: 5 },
  { title: 'IN POD', width: 7 },
];

function processCells({ process }: ProcessRow): readonly string[] {
  const { pid, containerPid, user, uid, usedMemoryBytes, usedPercent } = process;
  return [
    commandOf(process),
    String(pid),
    printable(user ?? (uid === null ? '-' : String(uid))),
    usedMemoryBytes === null ? '-' : `${gib(usedMemoryBytes)} GiB`,
    usedPercent === null ? '-' : usedPercent.toFixed(0),
    containerPid === null ? '-' : String(containerPid),
  ];
}

function commandOf({ command }: ProcessRow['process']): string {
  return printable(command ?? '-');
}

const HELP: readonly (readonly [keys: string, meaning: string])[] = [
  ['arrows, j k, wheel', 'select the next row'],
  ['PgUp PgDn, Space', 'a page'],
  ['Home End, g G', 'first and last row'],
  ['Enter, right, click', 'processes of the selected container'],
  ['Esc, left', 'back; clears the filter; selects nothing'],
  ['/', 'filter: all words must occur; gpu3 is GPU 3'],
  ['c m t n u', 'sort by cores, memory, throttling, name, GPU'],
  ['s, r', 'next sort; the other way round; or click a title'],
  ['v', 'tree of pods, containers and processes'],
  ['p', 'show or hide the GPUs'],
  ['Ctrl-L', 'draw again'],
  ['Ctrl-Z', 'suspend'],
  ['q, Ctrl-C', 'quit'],
];

function helpBody(columns: number): Body {
  const width = Math.max(...HELP.map(([keys]) => keys.length)) + 2;
  return {
    above: [],
    titles: null,
    rows: HELP.map(([keys, meaning]) => ({
      key: null,
      draw: () => cutLine([{ text: padEnd(keys, width), style: 'strong' }, { text: meaning }], columns),
    })),
    below: [],
    total: 0,
    hint: 'any key: back',
  };
}
