import { readFileSync, writeFileSync } from 'node:fs';
import type { ClientResult, ProgramResult } from './results.js';

const BEGIN = '<!-- npm run test:clients -- --table writes this table -->';
const END = '<!-- the end of the table -->';

/** The table of clients: how each reaches the driver, what was run, and the results alone and in a slice. */
export function clientTable(results: Readonly<Record<string, ClientResult>>): string {
  const rows = Object.values(results)
    .sort((a, b) => a.title.localeCompare(b.title, 'en'))
    .map(({ title, version, way, programs, limits }) => [
      title,
      version,
      way,
      programs.map(({ name }) => name).join('; '),
      programs.some(({ alone }) => alone.length > 0) ? 'does not run' : alone(programs),
      programs.some(({ inSlice }) => inSlice.length > 0) ? faults(programs) : 'the same, limits hold',
      limits,
    ]);
  const head = [
    'client',
    'version',
    'reaches the driver by',
    'what was run',
    'alone',
    'in a slice',
    'what does not run, and why',
  ];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(escape).join(' | ')} |`).join('\n');
}

/** Puts the table between its marks in a document. */
export function writeTable(path: string, results: Readonly<Record<string, ClientResult>>): void {
  const text = readFileSync(path, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${path} has no "${BEGIN}" with "${END}" behind it`);
  writeFileSync(path, `${text.slice(0, from + BEGIN.length)}\n\n${clientTable(results)}\n\n${text.slice(to)}`);
}

const escape = (cell: string): string => cell.replace(/\|/g, '\\|').replace(/\s+/g, ' ');

function alone(programs: readonly ProgramResult[]): string {
  const suites = programs.filter(({ passes }) => passes > 0);
  return ['runs', ...suites.map(({ passes, facts }) => `${passes} of ${facts} tests pass`)].join('; ');
}

function faults(programs: readonly ProgramResult[]): string {
  const all = programs.flatMap(({ inSlice }) => inSlice);
  return all.length > 2 ? `${all.slice(0, 2).join('; ')} and ${all.length - 2} more` : all.join('; ');
}
