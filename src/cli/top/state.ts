import type { ProcessSnapshot } from '../../agent/node/process-document.js';
import { printable } from '../terminal-text.js';
import type { InputEvent, KeyName } from './input.js';
import { moveBy, NO_LIST, select, settle, unselect, type ListState } from './list.js';
import {
  matches,
  sliceRows,
  sorted,
  textsOf,
  type Processes,
  type Sample,
  type SliceRow,
  type SortKey,
} from './sample.js';

/** The container whose processes are shown. */
export interface OpenSlice {
  /** As it was last seen: it may have ended. */
  readonly row: SliceRow;
  readonly ended: boolean;
  /** Null until they are read. */
  readonly processes: Processes | null;
  readonly list: ListState;
}

/** The state that determines what `top` shows, except the size of the terminal. */
export interface TopState {
  readonly sample: Sample | null;
  /** The slices of the sample. */
  readonly slices: readonly SliceRow[];
  /** Percent of use of each GPU in the last samples, by UUID, the latest last. */
  readonly trails: ReadonlyMap<string, readonly number[]>;
  /** Use of each slice in percent of what it may use, in the last samples, by its key, the latest last. */
  readonly sliceTrails: ReadonlyMap<string, readonly number[]>;
  /** Why the last attempt got no sample; null if it got one. */
  readonly outage: string | null;
  readonly sort: SortKey;
  readonly reversed: boolean;
  readonly showsGpus: boolean;
  /** Whether the list is a tree of pods, containers and processes. */
  readonly showsTree: boolean;
  /** Processes of slices by their keys, as the tree shows them. */
  readonly processes: ReadonlyMap<string, Processes>;
  readonly showsHelp: boolean;
  /** Whether keys are added to the filter. */
  readonly typing: boolean;
  readonly list: ListState;
  readonly open: OpenSlice | null;
  /** A message for the user, shown until the next key. */
  readonly notice: string | null;
}

export const START: TopState = {
  sample: null,
  slices: [],
  trails: new Map(),
  sliceTrails: new Map(),
  outage: null,
  sort: 'cores',
  reversed: false,
  showsGpus: true,
  showsTree: false,
  processes: new Map(),
  showsHelp: false,
  typing: false,
  list: NO_LIST,
  open: null,
  notice: null,
};

/** One process in the list of a container. */
export interface ProcessRow {
  readonly key: string;
  readonly process: ProcessSnapshot;
}

/** The action that follows a change of the state. */
export type Effect = 'none' | 'quit' | 'redraw' | 'suspend' | 'read-processes';

/** Positions in the last drawing, which keys and mouse refer to. */
export interface Targets {
  /** First row that is shown of the list. */
  readonly offset: number;
  /** Lines of a page of the list. */
  readonly page: number;
  /** Keys of the rows, by line. */
  readonly rows: ReadonlyMap<number, string>;
  readonly titles: { readonly line: number; readonly columns: readonly TitleTarget[] } | null;
}

/** A title that sorts when it is pressed. */
export interface TitleTarget {
  readonly from: number;
  readonly to: number;
  readonly sort: SortKey;
}

/** The slices that are shown, in their order; in a tree, those of one pod together. */
export function shownSlices({ slices, sort, reversed, showsTree, list }: TopState): readonly SliceRow[] {
  const shown = sorted(
    slices.filter((row) => matches(list.filter, textsOf(row))),
    sort,
    reversed,
  );
  if (!showsTree) return shown;
  const pods = new Map<string, SliceRow[]>();
  for (const row of shown) pods.set(podOf(row), [...(pods.get(podOf(row)) ?? []), row]);
  return [...pods.values()].flat();
}

/** Names the pod of a slice, or the allocation of one without. */
export function podOf({ node, allocation: { id, owners } }: SliceRow): string {
  const owner = owners.at(-1);
  return `${node}/${owner === undefined || owner.pod === '' ? id : `${owner.namespace}/${owner.pod}`}`;
}

/** The processes that are shown of a container on its GPU, by memory. */
export function shownProcesses({ row, processes, list }: OpenSlice): ProcessRow[] {
  return processesOf(row, processes)
    .filter((process) => matches(list.filter, textsOfProcess(process)))
    .map((process) => ({ key: String(process.pid), process }));
}

/** The processes of a slice by memory; their pids alone while no more is known. */
export function processesOf({ slice }: SliceRow, processes: Processes | null): readonly ProcessSnapshot[] {
  const { gpuUuid, gpuIndex, pids } = slice;
  const all: readonly ProcessSnapshot[] =
    processes?.known === true
      ? processes.document.processes.filter((process) => process.gpuUuid === gpuUuid)
      : pids.map((pid) => ({ ...NOTHING_KNOWN, gpuUuid, gpuIndex, pid }));
  return [...all].sort((a, b) => (b.usedMemoryBytes ?? 0) - (a.usedMemoryBytes ?? 0) || a.pid - b.pid);
}

const NOTHING_KNOWN = {
  containerPid: null,
  uid: null,
  user: null,
  command: null,
  usedMemoryBytes: null,
  usedPercent: null,
} as const;

function textsOfProcess({ pid, containerPid, user, uid, command }: ProcessSnapshot): readonly string[] {
  return [String(pid), String(containerPid ?? ''), printable(user ?? String(uid ?? '')), printable(command ?? '')];
}

const MAX_TRAIL = 60;

/** The state with a new sample. */
export function withSample(state: TopState, sample: Sample): TopState {
  const trails = new Map<string, readonly number[]>();
  for (const { snapshot } of sample.nodes)
    for (const { uuid, usedPercent } of snapshot?.gpus ?? [])
      trails.set(uuid, [...(state.trails.get(uuid) ?? []), usedPercent ?? 0].slice(-MAX_TRAIL));
  const slices = sliceRows(sample, state.sample);
  const sliceTrails = new Map(
    slices.map(({ key, slice: { usedPercent, share, softLimit } }) => {
      const part = (usedPercent / (softLimit ?? share)) * 100;
      return [key, [...(state.sliceTrails.get(key) ?? []), part].slice(-MAX_TRAIL)];
    }),
  );
  const find = (rows: readonly SliceRow[], key: string | null) => rows.find((row) => row.key === key);
  const wanted = find(slices, state.list.wanted);
  const ended = wanted === undefined ? find(state.slices, state.list.wanted) : undefined;
  const opened = state.open === null ? undefined : find(slices, state.open.row.key);
  return settled({
    ...state,
    sample,
    slices,
    trails,
    sliceTrails,
    outage: null,
    list: wanted === undefined ? { ...state.list, wanted: null } : state.list,
    open: state.open === null ? null : { ...state.open, row: opened ?? state.open.row, ended: opened === undefined },
    notice: ended === undefined ? state.notice : `${ended.name} has ended`,
  });
}

/** The state after an attempt that got no sample: the figures of the last one stay. */
export function withOutage(state: TopState, reason: string): TopState {
  return { ...state, outage: printable(reason) };
}

/** The state with the processes of the container `key`; nothing changes if it is not open any more. */
export function withProcesses(state: TopState, key: string, processes: Processes): TopState {
  if (state.open?.row.key !== key) return state;
  return settled({ ...state, open: { ...state.open, processes } });
}

/** The state with the processes of a slice in the tree. */
export function withTree(state: TopState, processes: ReadonlyMap<string, Processes>): TopState {
  return { ...state, processes };
}

/** Keeps selections on rows that are shown. */
function settled(state: TopState): TopState {
  const { open } = state;
  return {
    ...state,
    list: settle(state.list, keysOf(shownSlices(state))),
    open: open === null ? null : { ...open, list: settle(open.list, keysOf(shownProcesses(open))) },
  };
}

function keysOf(rows: readonly { readonly key: string }[]): string[] {
  return rows.map(({ key }) => key);
}

/** The state after a key or a movement of the mouse. */
export function react(
  state: TopState,
  event: InputEvent,
  targets: Targets,
): { readonly state: TopState; readonly effect: Effect } {
  const { offset } = targets;
  const drawn = withList({ ...state, notice: null }, { ...listOf(state), offset });
  const { state: next, effect } = answer(drawn, event, targets);
  return { state: settled(next), effect };
}

interface Answer {
  readonly state: TopState;
  readonly effect: Effect;
}

function answer(state: TopState, event: InputEvent, targets: Targets): Answer {
  if (event.kind === 'key') {
    if (event.name === 'interrupt') return { state, effect: 'quit' };
    if (event.name === 'suspend') return { state, effect: 'suspend' };
    if (event.name === 'redraw') return { state, effect: 'redraw' };
  }
  if (state.showsHelp) return help(state, event);
  switch (event.kind) {
    case 'key':
      return key(state, event.name, targets);
    case 'text':
      return state.typing
        ? still(withFilter(state, `${listOf(state).filter}${event.text}`))
        : letter(state, event.text, targets);
    case 'wheel':
      return still(moved(state, (list, keys) => moveBy(list, keys, event.lines * WHEEL_LINES)));
    case 'press':
      return press(state, event.row, event.column, targets);
  }
}

const WHEEL_LINES = 3;

function still(state: TopState): Answer {
  return { state, effect: 'none' };
}

function help(state: TopState, event: InputEvent): Answer {
  if (event.kind === 'text' && event.text === 'q') return { state, effect: 'quit' };
  return still(event.kind === 'wheel' ? state : { ...state, showsHelp: false });
}

const MOVES: Partial<Readonly<Record<KeyName, (page: number) => number>>> = {
  up: () => -1,
  down: () => 1,
  'page-up': (page) => -page,
  'page-down': (page) => page,
  home: () => -Infinity,
  end: () => Infinity,
};

function key(state: TopState, name: KeyName, { page }: Targets): Answer {
  const move = MOVES[name];
  if (move !== undefined) return still(moved(state, (list, keys) => moveBy(list, keys, move(Math.max(1, page)))));
  switch (name) {
    case 'enter':
      return state.typing ? still({ ...state, typing: false }) : openSelected(state);
    case 'escape':
      return still(back(state));
    case 'left':
      return still(state.typing ? state : { ...state, open: null });
    case 'right':
      return state.typing ? still(state) : openSelected(state);
    case 'backspace':
      return still(state.typing ? withFilter(state, withoutLast(listOf(state).filter)) : state);
    case 'clear':
      return still(state.typing ? withFilter(state, '') : moved(state, (list, keys) => moveBy(list, keys, -page)));
    default:
      return still(state);
  }
}

/** The state after Escape, which leaves the innermost level. */
function back(state: TopState): TopState {
  if (state.typing) return { ...withFilter(state, ''), typing: false };
  if (listOf(state).filter !== '') return withFilter(state, '');
  return state.open === null ? { ...state, list: unselect(state.list) } : { ...state, open: null };
}

const SORT_LETTERS: Readonly<Record<string, SortKey>> = {
  c: 'cores',
  m: 'memory',
  t: 'throttled',
  n: 'name',
  u: 'gpu',
};

/** The order in which the key `s` selects sort keys. */
const SORTS: readonly SortKey[] = Object.values(SORT_LETTERS);

function letter(state: TopState, text: string, targets: Targets): Answer {
  const sort = SORT_LETTERS[text];
  if (sort !== undefined) return still(sortedBy(state, sort));
  switch (text) {
    case 'q':
      return { state, effect: 'quit' };
    case 'j':
      return key(state, 'down', targets);
    case 'k':
      return key(state, 'up', targets);
    case 'g':
      return key(state, 'home', targets);
    case 'G':
      return key(state, 'end', targets);
    case ' ':
      return key(state, 'page-down', targets);
    case '/':
      return still({ ...state, typing: true });
    case '?':
    case 'h':
      return still({ ...state, showsHelp: true });
    case 'v':
      return { state: { ...state, showsTree: !state.showsTree, open: null }, effect: 'read-processes' };
    case 'p':
      return still({ ...state, showsGpus: !state.showsGpus });
    case 'r':
      return still({ ...state, reversed: !state.reversed });
    case 's':
      return still(sortedBy(state, SORTS[(SORTS.indexOf(state.sort) + 1) % SORTS.length] ?? 'cores'));
    default:
      return still(state);
  }
}

function sortedBy(state: TopState, sort: SortKey): TopState {
  return { ...state, sort, reversed: false };
}

function press(state: TopState, row: number, column: number, { rows, titles }: Targets): Answer {
  const key = rows.get(row);
  if (key !== undefined) {
    const again = listOf(state).key === key;
    return again ? openSelected(state) : still(withList(state, select(listOf(state), key)));
  }
  const title = titles?.line === row ? titles.columns.find(({ from, to }) => column >= from && column < to) : undefined;
  if (title === undefined) return still(state);
  return still(state.sort === title.sort ? { ...state, reversed: !state.reversed } : sortedBy(state, title.sort));
}

/** The list that keys move in. */
export function listOf(state: TopState): ListState {
  return state.open?.list ?? state.list;
}

function withList(state: TopState, list: ListState): TopState {
  return state.open === null ? { ...state, list } : { ...state, open: { ...state.open, list } };
}

function moved(state: TopState, move: (list: ListState, keys: readonly string[]) => ListState): TopState {
  const keys = keysOf(state.open === null ? shownSlices(state) : shownProcesses(state.open));
  return withList(state, move(listOf(state), keys));
}

/** Longest filter in characters: no name is longer, and most terminals show it in one line. */
const MAX_FILTER = 100;

function withFilter(state: TopState, filter: string): TopState {
  return withList(state, { ...listOf(state), filter: printable(filter).slice(0, MAX_FILTER) });
}

/** Takes away one character, as its user sees it. */
function withoutLast(text: string): string {
  return [...text].slice(0, -1).join('');
}

function openSelected(state: TopState): Answer {
  if (state.open !== null) return still(state);
  const row = state.slices.find(({ key }) => key === state.list.key);
  // The first press selects the first row, and the next one opens it.
  if (row === undefined) return still(moved(state, (list, keys) => moveBy(list, keys, 1)));
  const list = select(state.list, row.key);
  return {
    state: { ...state, list, open: { row, ended: false, processes: null, list: NO_LIST } },
    effect: 'read-processes',
  };
}
