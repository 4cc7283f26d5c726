import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const source = join(repository, 'src');

const EDGE = ['core', 'host'];
const WIRED_EDGE = [...EDGE, 'wire'];
const ALL_BUT_CLI = [
  ...WIRED_EDGE, 'driver', 'kube', 'volume', 'extender', 'allocator', 'kubelet', 'runtime', 'vgpu', 'display', 'emulator', 'quota',
];

/** The border of every part; the same table stands in docs/architecture.md. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  host: ['core'],
  wire: ['core', 'host'],
  driver: EDGE,
  kube: EDGE,
  volume: EDGE,
  extender: EDGE,
  allocator: EDGE,
  kubelet: WIRED_EDGE,
  runtime: WIRED_EDGE,
  vgpu: WIRED_EDGE,
  display: WIRED_EDGE,
  emulator: WIRED_EDGE,
  quota: [],
  app: ALL_BUT_CLI,
  cli: [...ALL_BUT_CLI, 'app'],
};

/** Folders of values in, values out. None of them knows another. */
const PURE_CORES = ['core/', 'quota/core/', 'quota/arbitrator/'];

/** Node modules that the pure cores may use: they compute, they do not touch the world. */
const PURE_NODE_MODULES = new Set(['node:crypto', 'node:buffer']);

interface Import {
  readonly from: string;
  readonly specifier: string;
}

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const pattern = /^\s*(?:import|export)\b[^'"]*?from\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;
  return [...text.matchAll(pattern)].map((match) => ({ from: file, specifier: match[1] ?? match[2] ?? match[3] ?? '' }));
}

function target(imported: Import): string | null {
  if (!imported.specifier.startsWith('.')) return null;
  return resolve(dirname(imported.from), imported.specifier).replace(/\.js$/, '.ts');
}

const partOf = (file: string): string => relative(source, file).split('/')[0] ?? '';

const files = sourceFiles(source);
const imports = files.flatMap(importsOf);

test('every folder of src is a known part', (t) => {
  const unknown = new Set(files.map(partOf).filter((part) => !(part in MAY_IMPORT)));
  t.same([...unknown], []);
  t.end();
});

test('parts import only what lies below them', (t) => {
  const wrong = imports.flatMap((imported) => {
    const file = target(imported);
    if (file === null) return [];
    const from = partOf(imported.from);
    const to = partOf(file);
    if (from === to || (MAY_IMPORT[from] ?? []).includes(to)) return [];
    return [`${relative(source, imported.from)} imports ${relative(source, file)}`];
  });
  t.same(wrong, []);
  t.end();
});

test('the pure cores import no package and touch nothing of the world', (t) => {
  const coreOf = (file: string) => PURE_CORES.find((core) => relative(source, file).startsWith(core));
  const wrong = imports
    .filter((imported) => coreOf(imported.from) !== undefined)
    .filter((imported) => {
      const file = target(imported);
      return file === null ? !PURE_NODE_MODULES.has(imported.specifier) : coreOf(file) !== coreOf(imported.from);
    })
    .map((imported) => `${relative(source, imported.from)} imports ${imported.specifier}`);
  t.same(wrong, []);
  t.end();
});

test('no two files import each other, directly or round a corner', (t) => {
  const edges = new Map<string, string[]>();
  for (const imported of imports) {
    const file = target(imported);
    if (file !== null) edges.set(imported.from, [...(edges.get(imported.from) ?? []), file]);
  }
  const done = new Set<string>();
  const cycles: string[] = [];
  const walk = (file: string, path: string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) {
      cycles.push([...path.slice(at), file].map((entry) => relative(source, entry)).join(' -> '));
      return;
    }
    if (done.has(file)) return;
    for (const next of edges.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) walk(file, []);
  t.same(cycles, []);
  t.end();
});
