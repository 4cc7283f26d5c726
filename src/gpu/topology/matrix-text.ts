import { levelOfLabel } from './level.js';
import { bridgeHiddenLevels, type Device, type Link } from './hidden-level.js';
import type { Topology } from './topology.js';

/** One GPU row of the matrix. */
export interface MatrixGpu {
  /** N of the row's name `GPU<N>`; rows of a partial matrix need not be contiguous. */
  readonly index: number;
  /** Such as `0-31,64-95`; null if the matrix has no such column or no value in it. */
  readonly cpuAffinity: string | null;
  /** First NUMA node of the column `NUMA Affinity`. */
  readonly numaNode: number | null;
}

export type MatrixResult =
  | { readonly ok: true; readonly gpus: readonly MatrixGpu[]; readonly topology: Topology }
  | { readonly ok: false; readonly line: number; readonly reason: string };

const ESCAPE = '\u001b';
/** Some versions underline the header even when they write to a file. */
const TERMINAL_ESCAPE = new RegExp(`${ESCAPE}\\[[0-9;]*[A-Za-z]`, 'gu');

/** No machine has more rows; a matrix of this size is read in a few milliseconds. */
const MAX_DEVICES = 256;

/**
 * Reads the output of `nvidia-smi topo -m` or `-mp`: a line of column names, one row per device, then legends. Accepts
 * the formats of drivers 352 to 580: cells separated by tabs or blanks, NIC columns and rows with any name, with or
 * without the columns `CPU Affinity`, `NUMA Affinity` and `GPU NUMA ID`, terminal escapes around the header, text such
 * as a shell prompt before it. Labels: `X`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, `SOC` (SYS of old drivers), `NV<n>`.
 *
 * An NVLink label hides the PCIe level of its pair, which is derived from the rest of the matrix
 * (`bridgeHiddenLevels`). A refusal names the first wrong line (1-based).
 */
export function parseMatrix(text: string): MatrixResult {
  const lines = text.replaceAll(TERMINAL_ESCAPE, '').split(/\r?\n/u);
  const headerAt = lines.findIndex(isHeader);
  if (headerAt < 0) return refuse(1, 'no line of column names (GPU0 GPU1 ...) found');
  const header = readHeader(lines[headerAt] as string);
  if (header.devices.length > MAX_DEVICES)
    return refuse(headerAt + 1, `${header.devices.length} columns, at most ${MAX_DEVICES} are read`);
  const twice = header.devices.find((name, at) => header.devices.indexOf(name) !== at);
  if (twice !== undefined) return refuse(headerAt + 1, `column ${twice} appears twice`);

  const rows = new Map<string, Row>();
  for (const [offset, line] of lines.slice(headerAt + 1).entries()) {
    const number = headerAt + 2 + offset;
    if (/^\s*(?:NIC )?Legend:/iu.test(line)) break;
    const row = readRow(header, line, number);
    if (row === null) continue;
    if (!('cells' in row)) return row;
    if (rows.has(row.name)) return refuse(number, `row ${row.name} appears twice`);
    rows.set(row.name, row);
  }
  const last = [...rows.values()].at(-1);
  const cut = last === undefined ? null : cutOff(header, lines, rows, last);
  if (cut !== null) return refuse(last?.line ?? headerAt + 1, cut);
  return assemble(header, rows, headerAt + 1);
}

/**
 * Detects text that ends within its last row, after the connections: nothing follows the row, and it has fewer cells
 * than the earlier rows, or a cell that is the beginning of one of their cells. Null if the row is complete.
 */
function cutOff(header: Header, lines: readonly string[], rows: ReadonlyMap<string, Row>, last: Row): string | null {
  if (header.affinities.length === 0 || lines.slice(last.line).some((line) => line.trim() !== '')) return null;
  const isLineEnded = last.line < lines.length;
  const others = [...rows.values()].filter((row) => row !== last && isGpuName(row.name) === isGpuName(last.name));
  const cells = (row: Row): string[] => words(lines[row.line - 1] as string).slice(1 + header.devices.length);
  const own = cells(last);
  const cellsOfOthers = others.map((row) => cells(row).length);
  const usual = others.length === 0 ? header.affinities.length : Math.min(...cellsOfOthers);
  const text = `the text ends within the row of ${last.name}`;
  if (own.length < usual && (others.length > 0 || !isLineEnded))
    return `${text}: ${own.length} of ${usual} cells follow its connections`;
  if (isLineEnded) return null;
  const at = own.length - 1;
  const cell = own[at];
  if (cell === undefined) return null;
  const longer = others.map((row) => cells(row)[at] ?? '').find((other) => other !== cell && other.startsWith(cell));
  if (longer !== undefined) return `${text}: "${cell}" is only the beginning of a cell such as "${longer}"`;
  return isWholeCell(cell) ? null : `${text}: "${cell}" is not a list of CPUs, a NUMA node or N/A`;
}

/** True for `0-15,32-47` (ascending), `1` and `N/A`. */
function isWholeCell(cell: string): boolean {
  if (cell === 'N/A') return true;
  if (!/^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$/u.test(cell)) return false;
  const numbers = cell.split(/[,-]/u).map(Number);
  return numbers.every((number, at) => at === 0 || number > (numbers[at - 1] as number));
}

interface Header {
  readonly devices: readonly string[];
  /** Titles of the columns after the devices, in order. */
  readonly affinities: readonly string[];
}

interface Row {
  readonly name: string;
  readonly line: number;
  /** One cell per device column. */
  readonly cells: readonly Link[];
  readonly cpuAffinity: string | null;
  readonly numaNode: number | null;
}

type UnreadableMatrix = Extract<MatrixResult, { ok: false }>;

function refuse(line: number, reason: string): UnreadableMatrix {
  return { ok: false, line, reason: `line ${line}: ${reason}` };
}

const words = (line: string): string[] => line.split(/\s+/u).filter((word) => word !== '');
const isGpuName = (word: string | undefined): word is string => word !== undefined && /^GPU\d{1,4}$/u.test(word);

/** A header begins with a GPU name that is not followed by a label; a row has labels. */
function isHeader(line: string): boolean {
  const [first, second] = words(line);
  return isGpuName(first) && (second === undefined || readLabel(second) === null);
}

function readHeader(line: string): Header {
  const all = words(line);
  const end = all.findIndex((word) => word === 'CPU' || word === 'NUMA' || word === 'GPU');
  const devices = end < 0 ? all : all.slice(0, end);
  const titles = end < 0 ? '' : all.slice(end).join(' ');
  return { devices, affinities: titles.match(/CPU Affinity|NUMA Affinity|GPU NUMA ID/gu) ?? [] };
}

/** Null for a line that is not a row; NIC rows are read like GPU rows. */
function readRow(header: Header, line: string, number: number): Row | UnreadableMatrix | null {
  const [name, ...rest] = words(line);
  if (name === undefined) return null;
  if (!header.devices.includes(name)) {
    return isGpuName(name) ? refuse(number, `row ${name} has no column`) : null;
  }
  const labels = rest.slice(0, header.devices.length);
  if (labels.length < header.devices.length) {
    return refuse(number, `${name} has ${labels.length} cells for ${header.devices.length} columns`);
  }
  const cells: Link[] = [];
  for (const [column, label] of labels.entries()) {
    const link = readLabel(label);
    const other = header.devices[column] as string;
    if (link === null) return refuse(number, `${name} to ${other} is "${label}", which is not a known connection`);
    if ((link.level === 'X') !== (other === name)) return refuse(number, `${name} to ${other} is "${label}"`);
    cells.push(link);
  }
  return { name, line: number, cells, ...readAffinities(header, line, rest.slice(header.devices.length)) };
}

/** Reads `X`, a PCIe level, or NVLinks that hide the level. */
function readLabel(label: string): Link | null {
  const level = levelOfLabel(label);
  if (level !== null) return { level, nvlinks: 0 };
  const links = /^NV(\d{1,3})$/u.exec(label);
  return links === null || Number(links[1]) === 0 ? null : { level: null, nvlinks: Number(links[1]) };
}

/**
 * Cells of the last columns. A row with fewer words than column titles has empty cells: only its tabs can tell which.
 */
function readAffinities(
  header: Header,
  line: string,
  tail: readonly string[],
): { cpuAffinity: string | null; numaNode: number | null } {
  const byTabs = line
    .split('\t')
    .slice(1 + header.devices.length)
    .map((cell) => cell.trim());
  const cells = tail.length >= header.affinities.length ? tail : line.includes('\t') ? byTabs : [];
  const cell = (title: string): string | null => cells[header.affinities.indexOf(title)] ?? null;
  const cpu = cell('CPU Affinity');
  const numa = /^\d{1,4}/u.exec(cell('NUMA Affinity') ?? '');
  return {
    cpuAffinity: cpu !== null && /^\d[\d,-]*$/u.test(cpu) ? cpu : null,
    numaNode: numa === null ? null : Number(numa[0]),
  };
}

function assemble(header: Header, rows: ReadonlyMap<string, Row>, headerLine: number): MatrixResult {
  const names = header.devices.filter(isGpuName);
  const missing = names.find((name) => !rows.has(name));
  if (missing !== undefined) return refuse(headerLine, `column ${missing} has no row`);
  const gpuRows = names.map((name) => rows.get(name) as Row);
  for (const [a, row] of gpuRows.entries()) {
    for (const [b, other] of gpuRows.slice(0, a).entries()) {
      const there = cellAt(header, row, names[b] as string);
      const back = cellAt(header, other, names[a] as string);
      if (there.level !== back.level || there.nvlinks !== back.nvlinks) {
        return refuse(
          row.line,
          `${row.name} to ${other.name} is ${labelOf(there)}, but ${labelOf(back)} in line ${other.line}`,
        );
      }
    }
  }
  const columns = [...names, ...header.devices.filter((name) => !isGpuName(name))];
  const devices: Device[] = gpuRows.map((row) => ({
    links: columns.map((name) => cellAt(header, row, name)),
    affinity: row.cpuAffinity ?? (row.numaNode === null ? null : `node ${row.numaNode}`),
  }));
  return {
    ok: true,
    gpus: gpuRows.map((row) => ({
      index: Number(row.name.slice('GPU'.length)),
      cpuAffinity: row.cpuAffinity,
      numaNode: row.numaNode,
    })),
    topology: bridgeHiddenLevels(devices),
  };
}

function cellAt(header: Header, row: Row, name: string): Link {
  return row.cells[header.devices.indexOf(name)] as Link;
}

function labelOf(link: Link): string {
  return link.level ?? `NV${link.nvlinks}`;
}
