import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const source = join(repository, 'src');

/** Code that programs share, lowest layer first. */
const PURE = ['gpu', 'abi', 'manifests'];
const NODE_PART = [...PURE, 'host', 'rpc'];
const PROGRAM = [...PURE, 'quota', 'quota-command', 'host', 'http', 'page', 'kube', 'rpc'];

/**
 * The floors of the agent, lowest first. A part imports only parts of lower floors; the files at the root of the agent
 * are above all parts.
 */
const AGENT_FLOORS: readonly (readonly string[])[] = [
  ['agent/api-server', 'agent/device-plugin', 'agent/gpus', 'agent/libraries', 'agent/runtimes'],
  ['agent/slices'],
  ['agent/allocator'],
  ['agent/claims', 'agent/nri'],
  ['agent/node'],
  ['agent/display', 'agent/doctor'],
  ['agent'],
];

/**
 * The floors of the quota controller, lowest first. A part imports only parts of lower floors; the files at its root
 * are above all parts.
 */
const QUOTA_FLOORS: readonly (readonly string[])[] = [
  ['policy', 'store', 'workloads'],
  ['clock', 'ledger', 'offline', 'reconciler'],
  ['arbitrator', 'controller'],
  ['give-back', 'objects'],
  ['admission', 'kueue'],
];

/** How many files may stand above the parts of the quota controller. */
const QUOTA_ROOT_FILES = 6;

/**
 * What every part may import; the same table is in docs/design/architecture.md. A file belongs to the longest of these
 * paths that is a prefix of its own.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  abi: [],
  gpu: ['abi'],
  manifests: [],
  quota: ['manifests'],
  'quota-command': ['quota', 'manifests'],
  host: [],
  http: ['host'],
  page: ['host', 'http'],
  rpc: ['host'],
  kube: [...PURE, 'host', 'http', 'quota'],
  'agent/allocator': NODE_PART,
  'agent/api-server': [...PURE, 'host', 'http', 'kube'],
  'agent/claims': [...NODE_PART, 'kube'],
  'agent/device-plugin': NODE_PART,
  'agent/display': [...NODE_PART, 'http', 'page'],
  'agent/doctor': [...NODE_PART, 'kube'],
  'agent/gpus': [...PURE, 'host'],
  'agent/libraries': [...PURE, 'host'],
  'agent/node': [...NODE_PART, 'http'],
  'agent/nri': NODE_PART,
  'agent/runtimes': NODE_PART,
  'agent/slices': [...NODE_PART, 'kube'],
  agent: PROGRAM,
  'cluster/placement': PURE,
  cluster: [...PURE, 'host', 'kube', 'cluster/placement'],
  'cluster/explain': [...PURE, 'host', 'kube', 'cluster', 'cluster/placement'],
  'cluster/shapes': [...PURE, 'host', 'kube', 'quota'],
  scheduler: [...PROGRAM, 'cluster', 'cluster/placement'],
  'quota-controller': [...PROGRAM, 'cluster/shapes'],
  'claim-webhook': PROGRAM,
  console: [...PROGRAM, 'cluster/explain', 'cluster/shapes'],
  // The simulated node runs the real agent, and the simulated cluster the other programs.
  simulation: [...PROGRAM, 'cluster/explain', 'agent', ...AGENT_FLOORS.flat(), 'quota-controller', 'console'],
  cli: [
    ...PROGRAM,
    'agent',
    ...AGENT_FLOORS.flat(),
    'cluster',
    'cluster/placement',
    'cluster/explain',
    'scheduler',
    'quota-controller',
    'claim-webhook',
    'console',
    'simulation',
  ],
};

/**
 * Pure computation: these import only each other within one line of this list, no package, and no module with side
 * effects.
 */
const PURE_CORES = [
  [
    'abi/',
    'gpu/',
    'cluster/placement/',
    ...['audit/audit', 'audit/findings', 'limits/live-limits'].map((name) => `agent/slices/${name}.ts`),
    ...['steering/over-share', 'steering/steering', 'usage/usage-counters'].map((name) => `agent/slices/${name}.ts`),
    'kube/limit-annotations.ts',
    ...['cpu-affinity', 'cpu-list'].map((name) => `agent/nri/${name}.ts`),
  ],
  ['agent/gpus/health.ts', 'agent/gpus/health-policy.ts'],
  ['quota/core/'],
  ['quota/arbitrator/'],
  ['rpc/ttrpc/message.ts', 'rpc/ttrpc/chunk.ts'],
  ['manifests/'],
];

/** The part that every pure core may import: quantities and selectors of Kubernetes are implemented once. */
const SHARED = 'manifests/';

/** What outsiders may import of the quota engine. Its tests are insiders. */
const QUOTA_DOORS = ['core', 'index', 'internal', 'store/contract'].map((name) => `quota/${name}.ts`);

/** Node modules that the pure cores may use: they only compute. */
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
  const pattern =
    /^\s*(?:import|export)\b[^'"]*?from\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;
  return [...text.matchAll(pattern)].map((match) => ({
    from: file,
    specifier: match[1] ?? match[2] ?? match[3] ?? '',
  }));
}

function target(imported: Import): string | null {
  if (!imported.specifier.startsWith('.')) return null;
  return resolve(dirname(imported.from), imported.specifier).replace(/\.js$/, '.ts');
}

const PARTS = Object.keys(MAY_IMPORT).sort((a, b) => b.length - a.length);
const partOf = (file: string): string =>
  PARTS.find((part) => relative(source, file).startsWith(`${part}/`)) ?? relative(source, file);

const floorOf = (part: string): number => AGENT_FLOORS.findIndex((parts) => parts.includes(part));
const isLowerFloor = (from: string, to: string): boolean => floorOf(to) >= 0 && floorOf(to) < floorOf(from);

const files = sourceFiles(source);
const imports = files.flatMap(importsOf);

test('the table of borders lists every folder of src', (t) => {
  const unknown = new Set(files.map(partOf).filter((part) => !(part in MAY_IMPORT)));
  t.same([...unknown], []);
  t.end();
});

test('parts import only parts below them', (t) => {
  const wrong = imports.flatMap((imported) => {
    const file = target(imported);
    if (file === null) return [];
    const from = partOf(imported.from);
    const to = partOf(file);
    if (from === to || (MAY_IMPORT[from] ?? []).includes(to) || isLowerFloor(from, to)) return [];
    return [`${relative(source, imported.from)} imports ${relative(source, file)}`];
  });
  t.same(wrong, []);
  t.end();
});

test('a part of the agent imports index.ts or ports.ts of another part, and nothing else of it', (t) => {
  const isPart = (part: string) => part !== 'agent' && floorOf(part) >= 0;
  const wrong = imports.flatMap((imported) => {
    const file = target(imported);
    if (file === null || floorOf(partOf(imported.from)) < 0) return [];
    const to = partOf(file);
    const isDoor = [`${to}/index.ts`, `${to}/ports.ts`].includes(relative(source, file));
    if (!isPart(to) || to === partOf(imported.from) || isDoor) return [];
    return [`${relative(source, imported.from)} imports ${relative(source, file)}`];
  });
  t.same(wrong, []);
  t.end();
});

test('outsiders import the index and the store contract of the quota engine, and nothing else of it', (t) => {
  const outsiders = ['src', 'test', 'bench', 'examples'].flatMap((folder) => sourceFiles(join(repository, folder)));
  const isInsider = (file: string) => /^(?:src|test)\/quota\//.test(relative(repository, file));
  const wrong = outsiders
    .filter((file) => !isInsider(file))
    .flatMap(importsOf)
    .flatMap((imported) => {
      const file = target(imported);
      const path = file === null ? '' : relative(source, file);
      if (!path.startsWith('quota/') || QUOTA_DOORS.includes(path)) return [];
      return [`${relative(repository, imported.from)} imports ${path}`];
    });
  t.same(wrong, []);
  t.end();
});

test('the table of borders in docs/design/architecture.md equals this table', (t) => {
  const document = readFileSync(join(repository, 'docs/design/architecture.md'), 'utf8');
  const names = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const table = (document.split('| part | may import |')[1] ?? '').split('\n\n')[0] ?? '';
  const rows = [...table.matchAll(/^\| (`.*?) \| (.*) \|$/gm)].map(([, parts = '', may = '']) => ({ parts, may }));
  t.same(rows.flatMap(({ parts }) => names(parts)).sort(), Object.keys(MAY_IMPORT).sort());
  const lists = rows.filter(({ may }) => /^(nothing of ours|`[^`]+`(, `[^`]+`)*)$/.test(may));
  t.ok(lists.length > 8);
  for (const { parts, may } of lists)
    for (const part of names(parts)) t.same(names(may).sort(), [...(MAY_IMPORT[part] ?? [])].sort(), part);
  t.end();
});

test('the floors of the agent in docs/design/architecture.md equal these floors', (t) => {
  const document = readFileSync(join(repository, 'docs/design/architecture.md'), 'utf8');
  const rows = [...document.matchAll(/^\| (\d+) \| `(agent[^`]*)` \|/gm)].map(([, floor, part]) => `${floor} ${part}`);
  const floors = AGENT_FLOORS.flatMap((parts, index) => parts.map((part) => `${index + 1} ${part}`));
  t.same(rows.sort(), floors.sort());
  t.end();
});

test('the parts of the quota controller import only parts of lower floors, and few files stand above them', (t) => {
  const inside = (file: string): string | null => /^quota-controller\/(.*)$/.exec(relative(source, file))?.[1] ?? null;
  const floorOfPath = (path: string): number => {
    if (!path.includes('/')) return QUOTA_FLOORS.length;
    return QUOTA_FLOORS.findIndex((parts) => parts.some((part) => path.startsWith(`${part}/`)));
  };
  const paths = files.map(inside).filter((path) => path !== null);
  t.same(
    paths.filter((path) => floorOfPath(path) < 0),
    [],
    'every folder has a floor',
  );
  t.ok(paths.filter((path) => !path.includes('/')).length <= QUOTA_ROOT_FILES);
  const wrong = imports.flatMap((imported) => {
    const file = target(imported);
    const from = inside(imported.from);
    const to = file === null ? null : inside(file);
    if (from === null || to === null || dirname(from) === dirname(to) || floorOfPath(to) < floorOfPath(from)) return [];
    return [`${from} imports ${to}`];
  });
  t.same(wrong, []);
  t.end();
});

test('the floors of the quota controller in docs/design/architecture.md equal these floors', (t) => {
  const document = readFileSync(join(repository, 'docs/design/architecture.md'), 'utf8');
  const rows = [...document.matchAll(/^\| (\d+) \| `quota-controller\/([^`]+)` \|/gm)];
  const floors = QUOTA_FLOORS.flatMap((parts, index) => parts.map((part) => `${index + 1} ${part}`));
  t.same(rows.map(([, floor, part]) => `${floor} ${part}`).sort(), floors.sort());
  t.end();
});

test('the pure cores import no package and no module with side effects', (t) => {
  const coreOf = (file: string) =>
    PURE_CORES.find((core) => core.some((path) => relative(source, file).startsWith(path)));
  const wrong = imports
    .filter((imported) => coreOf(imported.from) !== undefined)
    .filter((imported) => {
      const file = target(imported);
      if (file === null) return !PURE_NODE_MODULES.has(imported.specifier);
      return !relative(source, file).startsWith(SHARED) && coreOf(file) !== coreOf(imported.from);
    })
    .map((imported) => `${relative(source, imported.from)} imports ${imported.specifier}`);
  t.same(wrong, []);
  t.end();
});

test('no two files import each other, directly or through other files', (t) => {
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
