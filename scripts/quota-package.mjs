// Gathers the quota engine into a folder that `npm pack` and `npm publish` take:
//
//     node scripts/quota-package.mjs DIRECTORY
//
// The manifest and the README stand in src/quota. The documents keep the links that lead to a file of the package; of the
// others the text stays. The examples import the package by its name, as the programs of its users do. The code is what index.ts and the store contract import, compiled by
// `npm run build`. src/manifests goes to the folder manifests of the package. An import of a package ends the run: the
// engine has no dependencies.
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMPILED = join(ROOT, 'dist/src/quota');
const MANIFESTS = join(ROOT, 'dist/src/manifests');
const ENTRIES = ['index', 'core', 'store/contract'];
const DOCUMENTS = [
  'start/embedder.md',
  'reference/quota.md',
  'reference/arbitrator.md',
  'design/optimistic-concurrency.md',
];
const EXAMPLES = ['quota-engine.mjs', 'quota-engine.ts', 'quota-custom-store.ts'];

const [target] = process.argv.slice(2);
if (target === undefined) {
  console.error('usage: quota-package.mjs DIRECTORY');
  process.exit(2);
}

const IMPORT = /((?:\bfrom|^import|\bimport\()\s*['"])([^'"]+)(?=['"])/gm;

/** The path of a module in the package; null for one that does not belong to the engine. */
function placeOf(module) {
  for (const [folder, place] of [
    [COMPILED, ''],
    [MANIFESTS, 'manifests'],
  ])
    if (!relative(folder, module).startsWith('..')) return join(place, relative(folder, module));
  return null;
}

/** A compiled file with its imports as they are in the package. */
function placed(module, text) {
  return text.replace(IMPORT, (all, before, name) => {
    if (!name.startsWith('.')) return all;
    const path = relative(dirname(placeOf(module)), placeOf(resolve(dirname(module), name)));
    return before + (path.startsWith('.') ? path : `./${path}`);
  });
}

async function copyInto(from, to) {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, to);
}

/** A document without the links that lead out of the package. */
function linkedInside(place, text) {
  return text.replace(/\[([^\]]*)\]\(([^)\s]+)\)/g, (all, words, link) => {
    if (/^(?:https?:|#)/.test(link)) return all;
    const path = join(dirname(place), link.replace(/#.*$/, ''));
    return existsSync(join(target, path)) || path === 'README.md' || DOCUMENTS.some((name) => path === `docs/${name}`)
      ? all
      : words;
  });
}

/** The modules that a compiled file or its declarations import. */
async function importsOf(file) {
  const text = await readFile(file, 'utf8');
  const imports = [...text.matchAll(IMPORT)].map(([, , name]) => name);
  const foreign = imports.find((name) => !name.startsWith('.') && !name.startsWith('node:'));
  if (foreign !== undefined)
    throw new Error(`${relative(ROOT, file)} imports ${foreign}: the engine has no dependencies`);
  return imports
    .filter((name) => name.startsWith('.'))
    .map((name) => resolve(dirname(file), name.replace(/\.js$/, '')));
}

const modules = new Set(ENTRIES.map((entry) => join(COMPILED, entry)));
for (const module of modules) {
  if (placeOf(module) === null) throw new Error(`${module} is outside of the engine`);
  for (const extension of ['.js', '.d.ts']) for (const found of await importsOf(module + extension)) modules.add(found);
}

await rm(target, { recursive: true, force: true });
for (const module of [...modules].sort()) {
  const to = join(target, placeOf(module));
  await mkdir(dirname(to), { recursive: true });
  for (const extension of ['.js', '.d.ts'])
    await writeFile(to + extension, placed(module, await readFile(module + extension, 'utf8')));
}
await copyFile(join(ROOT, 'src/quota/package.json'), join(target, 'package.json'));
await copyFile(join(ROOT, 'LICENSE'), join(target, 'LICENSE'));
for (const name of EXAMPLES) {
  await copyInto(join(ROOT, 'examples', name), join(target, 'examples', name));
  const program = name.replace(/\.ts$/, '.js');
  if (program !== name) await copyInto(join(ROOT, 'dist/examples', program), join(target, 'examples', program));
}
const documents = new Map([
  ['README.md', join(ROOT, 'src/quota/README.md')],
  ...DOCUMENTS.map((name) => [`docs/${name}`, join(ROOT, 'docs', name)]),
]);
for (const [place, from] of documents) {
  const to = join(target, place);
  await mkdir(dirname(to), { recursive: true });
  const text = (await readFile(from, 'utf8')).replaceAll(
    '](../../docs/',
    place === 'README.md' ? '](docs/' : '](../../docs/',
  );
  await writeFile(to, linkedInside(place, text));
}
console.log(`${modules.size} modules in ${target}`);
