import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';
import { test } from 'tap';
import type * as Core from '../../src/quota/core.js';
import { cases } from '../cases.js';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What users have, and the native compiler, which writes the same code in a fifth of the time. */
const COMPILER = { users: 'node_modules/typescript/bin/tsc', native: 'node_modules/typescript-native/bin/tsc' };

/** A store as a user of the package writes it: records in one map, one revision for each group. */
const CUSTOM_STORE = `
import {
  toRecord, latestHead, createEngine,
  type Batch, type Committed, type GroupImage, type GroupRecord, type Loaded, type RecordSink, type Revision,
  type StateHead, type Store, type StoredRecord,
} from 'gpu-manager-quota';

export class Shelf {
  readonly records = new Map<string, StoredRecord>();
  readonly revisions = new Map<string, Revision>();
  head: StateHead = { revision: 0, now: 0, lives: 0 };
  written = 0;
}

export class ShelfStore implements Store {
  readonly exclusive = false;
  constructor(readonly shelf: Shelf) {}
  async load(sink: RecordSink): Promise<Loaded> {
    sink.newDictionary();
    for (const record of this.shelf.records.values()) sink.add(record);
    return { head: this.shelf.head, revisions: new Map(this.shelf.revisions) };
  }
  async list(): Promise<ReadonlyMap<string, Revision>> { return new Map(this.shelf.revisions); }
  async read(groups: readonly string[]): Promise<readonly GroupImage[]> {
    const all = [...this.shelf.records.values()];
    return groups.map((name) => ({
      name,
      revision: this.shelf.revisions.get(name) ?? null,
      records: all.filter((record) => record.group === name),
      children: new Map(all.flatMap((record): [string, Revision][] => {
        const value: GroupRecord | null = record.kind === 'group' ? record.value : null;
        return value !== null && value.parent === name ? [[record.key, this.shelf.revisions.get(record.key) ?? '']] : [];
      })),
    }));
  }
  async commit({ head, changes, expected }: Batch): Promise<Committed> {
    const { records, revisions } = this.shelf;
    const groups = [...expected].filter(([name, revision]) => (revisions.get(name) ?? null) !== revision).map(([name]) => name);
    if (groups.length > 0) return { ok: false, code: 'Conflict', groups };
    for (const change of changes) {
      const name = change.kind + ' ' + change.key;
      if (change.value !== null) records.set(name, toRecord(change, null));
      else if (records.get(name)?.group === change.group) records.delete(name);
    }
    this.shelf.head = latestHead(this.shelf.head, head);
    const now = new Map<string, Revision>();
    for (const name of expected.keys()) {
      if (!records.has('group ' + name)) { revisions.delete(name); continue; }
      const revision = String(++this.shelf.written);
      revisions.set(name, revision);
      now.set(name, revision);
    }
    return { ok: true, revisions: now };
  }
  async close(): Promise<void> {}
}

export const open = (shelf: Shelf) => createEngine({ store: new ShelfStore(shelf) });
`;

const RUN = `
import { test } from 'node:test';
import { storeContract } from 'gpu-manager-quota/store/contract.js';
import { Shelf, ShelfStore } from './store.js';

const rules = storeContract(async () => {
  const shelf = new Shelf();
  return { open: async () => new ShelfStore(shelf), destroy: async () => undefined };
}, true);
for (const rule of rules) test(rule.name, rule.run);
`;

/** A program that has no types of Node, and checks the declarations of the package too. */
const WITHOUT_NODE_TYPES = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2022',
    module: 'es2022',
    moduleResolution: 'bundler',
    types: [],
  },
  files: ['store.ts'],
};

/** What the README says about CommonJS and amounts. */
const FROM_COMMONJS = `
import { amount, amounts, createEngine, formatAmount } from 'gpu-manager-quota';

void createEngine().then(async (engine) => {
  await engine.createGroup({ name: 'vision', hard: { 'limits.cpu': 8 } });
  await engine.admit({ workload: { kind: 'Job', name: 'train' }, group: 'vision', podSets: [{ count: 4, limits: { cpu: 1 } }] });
  const used = engine.status('vision')?.used.get('limits.cpu') ?? 0n;
  if (used !== amount('limits.cpu', '4') || used !== BigInt(amounts({ cpu: '4' }).get('cpu') ?? 0)) throw new Error('amounts');
  console.log(used, formatAmount('limits.cpu', used));
});
`;

test('the engine package installs offline, passes the type check, and runs its store contract', async (t) => {
  const scratch = await scratchDirectory(t);
  const npm = (cwd: string, ...args: string[]): string =>
    execFileSync('npm', [...args, '--offline', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd,
      encoding: 'utf8',
      env: { ...process.env, npm_config_cache: join(scratch, 'cache') },
    });
  const staged = join(scratch, 'staged');
  execFileSync(process.execPath, [join(ROOT, 'scripts/quota-package.mjs'), staged]);
  const [packed] = JSON.parse(npm(staged, 'pack', '--json', '--pack-destination', scratch)) as {
    readonly filename: string;
    readonly unpackedSize: number;
    readonly files: readonly { readonly path: string }[];
  }[];
  const paths = packed?.files.map(({ path }) => path) ?? [];
  for (const path of ['index.d.ts', 'store/contract.js', 'README.md', 'LICENSE', 'docs/reference/quota.md'])
    t.ok(paths.includes(path), `${path} is in the package`);
  t.notOk(
    paths.some((path) => path.startsWith('command/')),
    'the commands of gpu-manager are not in the package',
  );
  t.ok((packed?.unpackedSize ?? Infinity) < 1_500_000, `${packed?.unpackedSize} bytes`);

  const home = join(scratch, 'home');
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'home', private: true, type: 'module' }));
  npm(home, 'install', join(scratch, packed?.filename ?? ''));
  t.same(
    readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.')),
    ['gpu-manager-quota'],
    'the package has no dependencies',
  );

  writeFileSync(join(home, 'store.ts'), CUSTOM_STORE);
  writeFileSync(join(home, 'store.test.ts'), RUN);
  const check = (compiler: keyof typeof COMPILER, ...flags: string[]): void => {
    const common = ['--strict', '--skipDefaultLibCheck', '--target', 'es2022'];
    const types = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node'];
    const options = flags.includes('--project') ? flags : [...common, ...types, ...flags];
    const outcome = (() => {
      try {
        return execFileSync(process.execPath, [join(ROOT, COMPILER[compiler]), ...options], {
          cwd: home,
          encoding: 'utf8',
        });
      } catch (error) {
        return (error as { stdout: string }).stdout;
      }
    })();
    t.equal(outcome, '', flags.join(' '));
  };
  writeFileSync(join(home, 'alone.json'), JSON.stringify(WITHOUT_NODE_TYPES));
  check(cases('native', 'users'), '--project', 'alone.json');
  writeFileSync(join(home, 'old.cts'), FROM_COMMONJS);
  const files = ['store.ts', 'store.test.ts', 'old.cts'];
  // The oldest way to find a module, which the native compiler does not know.
  if (cases(false, true))
    check('users', '--noEmit', '--module', 'es2022', '--moduleResolution', 'node', ...files.slice(0, 2));
  check(cases('native', 'users'), '--module', 'nodenext', '--moduleResolution', 'nodenext', ...files);
  const told = execFileSync(process.execPath, ['--test', '--test-reporter=tap', 'store.test.js'], {
    cwd: home,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
  });
  t.match(told, /# pass 1[0-9]\n# fail 0/);

  t.equal(execFileSync(process.execPath, ['--no-warnings', 'old.cjs'], { cwd: home, encoding: 'utf8' }), '4000n 4\n');
});

test('the package stands alone: its pages, its examples, and its core in a browser', async (t) => {
  const scratch = await scratchDirectory(t);
  const staged = join(scratch, 'node_modules/gpu-manager-quota');
  execFileSync(process.execPath, [join(ROOT, 'scripts/quota-package.mjs'), staged]);
  writeFileSync(join(scratch, 'package.json'), JSON.stringify({ type: 'module' }));
  const node = (...args: string[]): string => execFileSync(process.execPath, args, { cwd: scratch, encoding: 'utf8' });

  const pages = readdirSync(staged, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.md'));
  t.ok(pages.length >= 5, pages.join(', '));
  for (const page of pages) {
    const text = readFileSync(join(staged, page), 'utf8');
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(?:https?:|#)/.test(link)) continue;
      t.ok(existsSync(join(staged, dirname(page), link.replace(/#.*/, ''))), `${page}: ${link}`);
    }
    t.notMatch(text, /gpu-manager\/quota'/, `${page} names the package as its manifest does`);
  }

  const guide = readFileSync(join(staged, 'docs/start/embedder.md'), 'utf8');
  const [, program = ''] = /```js embed\n([^]*?)```/.exec(guide) ?? [];
  writeFileSync(join(scratch, 'quota.mjs'), program);
  const outputs = [...guide.matchAll(/```text\n([^]*?)```/g)].map(([, output]) => output);
  const told = [node('node_modules/gpu-manager-quota/examples/quota-engine.mjs'), node('quota.mjs')];
  t.same(told, outputs, 'the programs of the page print what it shows');

  const entry =
    "import { amount, arbitrate, createEngine, Quota } from 'gpu-manager-quota/core'; globalThis.quota = { amount, arbitrate, createEngine, Quota };";
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: scratch },
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
  });
  // A browser has neither process nor Buffer.
  const window: { quota?: typeof Core } = {};
  runInNewContext(outputFiles[0]?.text ?? '', Object.assign(window, { setTimeout, queueMicrotask, console }));
  const engine = await window.quota?.createEngine();
  await engine?.createGroup({ name: 'g', hard: { 'limits.cpu': 1 } });
  const demand = { workload: { kind: 'Job', name: 'j' }, group: 'g', podSets: [{ count: 2, limits: { cpu: 1 } }] };
  t.equal((await engine?.admit(demand))?.code, 'QuotaExceeded');
});

test('the engine and the repository have the same version', (t) => {
  const versionOf = (path: string): string =>
    (JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as { version: string }).version;
  t.equal(versionOf(join('src/quota', 'package.json')), versionOf('package.json'));
  t.end();
});
