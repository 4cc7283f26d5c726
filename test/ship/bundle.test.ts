import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { mirrorIn, noMirror } from '../cli/mirror.js';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BUNDLE = join(ROOT, 'scripts/bundle.mjs');
const PACKAGE_LIST = join(ROOT, 'scripts/sbom.mjs');
const SOURCES = join(ROOT, 'src');

/** Hash of each file below `root`, by its path there. */
function hashes(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(root, path)).isFile(),
  );
  return Object.fromEntries(
    files.sort().map((path) => [
      path,
      createHash('sha256')
        .update(readFileSync(join(root, path)))
        .digest('hex'),
    ]),
  );
}

/** A file of a bundle and those that Node loads with it, as paths below `root`. */
function loadedWith(root: string, file: string, found: ReadonlySet<string> = new Set()): ReadonlySet<string> {
  if (found.has(file)) return found;
  const text = readFileSync(join(root, file), 'utf8');
  const imported = [...text.matchAll(/\b(?:import|from)"(\.[^"]+)"/gu)].map(([, path = '']) =>
    join(dirname(file), path),
  );
  return imported.reduce<ReadonlySet<string>>((all, path) => loadedWith(root, path, all), new Set([...found, file]));
}

test('repeated builds give the same bundle, which runs by itself and names the licences of its contents', async (t) => {
  const scratch = await scratchDirectory(t);
  const [first, second] = [join(scratch, 'first'), join(scratch, 'elsewhere/second')];
  for (const directory of [first, second]) execFileSync(process.execPath, [BUNDLE, directory]);
  t.same(hashes(second), hashes(first));

  const main = join(first, 'dist/src/cli/main.js');
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, [main, ...args], { encoding: 'utf8', cwd: scratch });
  const { version } = JSON.parse(readFileSync(join(first, 'package.json'), 'utf8')) as { version: string };
  t.equal(run('--version'), `${version}\n`);
  t.match(run('version', '-o', 'yaml', '--display-socket', join(scratch, 'none')), new RegExp(`\\b${version}\\b`));
  for (const command of ['run', 'quota']) t.match(run(command, '--help'), new RegExp(`gpu-manager ${command}`));

  const unusable = spawnSync(process.execPath, [main, 'run', '--query-port=99999'], { encoding: 'utf8' });
  t.match(unusable, { status: 2, stderr: /^gpu-manager: --query-port: must be at most 65535/ });
  const loaded = loadedWith(first, 'dist/src/cli/agent-program.js');
  t.ok(loaded.size <= 10, `the agent starts from few files: ${[...loaded].join(' ')}`);
  for (const file of [...loaded, ...loadedWith(first, 'dist/src/cli/main.js')])
    t.notMatch(
      readFileSync(join(first, file), 'utf8'),
      /\bfrom ?"(?:node:)?http"/u,
      `${file} loads no HTTP client of Node`,
    );

  // A program that starts as a file of its own.
  if (noMirror === false) {
    const { config, environment } = await mirrorIn(scratch);
    const { stdout } = spawnSync(
      process.execPath,
      [main, 'doctor', '--driver', 'sim', '--volume-config', config, '--device-plugin-path', scratch],
      { encoding: 'utf8', env: { ...process.env, ...environment } },
    );
    t.match(stdout, /^ok +interposition +a program loads the control library/m);
  } else t.comment(`doctor of the bundle is not tried: ${noMirror}`);

  const licences = readFileSync(join(first, 'LICENCES.md'), 'utf8');
  for (const name of ['@grpc/grpc-js', 'koffi', 'pino', 'zod'])
    t.match(licences, new RegExp(`^## ${name} [\\d.]+: \\S+`, 'm'));

  const listed = packageList();
  const inBundle = [...licences.matchAll(/^## (\S+) (\S+): /gmu)].map(([, name, at]) => `${name} ${at}`);
  const addons = listed.filter(({ name }) => name.startsWith('@koromix/koffi-linux-'));
  t.same(addons.map(({ name }) => name).sort(), ['@koromix/koffi-linux-arm64', '@koromix/koffi-linux-x64']);
  t.same(
    listed
      .filter((component) => !addons.includes(component))
      .map(({ name, version: at }) => `${name} ${at}`)
      .sort(),
    inBundle.sort(),
    'the released list of packages has those that ship, and no other',
  );
  const named = new Set(listed.map(({ name }) => name));
  t.same(
    Object.keys(manifestOf('.').dependencies ?? {}).filter((name) => !named.has(name)),
    [],
  );
  for (const { purl, hashes: [hash] = [], licenses } of listed) {
    t.match(hash, { alg: 'SHA-512', content: /^[0-9a-f]{128}$/u }, purl);
    t.ok(licenses?.[0]?.expression, `${purl} has a licence`);
  }
});

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly { readonly expression: string }[];
}

/** What `npm run sbom` lists. */
function packageList(): readonly Component[] {
  const text = execFileSync(process.execPath, [PACKAGE_LIST], { encoding: 'utf8' });
  return (JSON.parse(text) as { readonly components: readonly Component[] }).components;
}

test('a bundle keeps the names of every package that is loaded only when needed', (t) => {
  const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  const loads = sources.flatMap((path) =>
    [
      ...readFileSync(join(SOURCES, path), 'utf8').matchAll(/(\{ default: \w+ \} = )?await import\('([^.'][^']*)'\)/gu),
    ].map(([, byDefault, name = '']) => ({ path, byDefault, name })),
  );
  t.ok(loads.length > 0);
  // Of a package of the older module system, a file that is loaded alone has no export but its default.
  for (const { path, byDefault, name } of loads)
    t.ok(
      byDefault !== undefined || isModule(name),
      `${path}: load a module of this repository that names what it takes from ${name}`,
    );
  t.end();
});

/** Whether a package has modules of ECMAScript alone. */
function isModule(name: string): boolean {
  const [folder = ''] = /^(?:@[^/]+\/)?[^/]+/u.exec(name) ?? [];
  return manifestOf(join('node_modules', folder)).type === 'module';
}

interface Manifest {
  readonly type?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;
}
