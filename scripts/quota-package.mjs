// Gathers the quota engine into a folder that `npm pack` and `npm publish` take:
//
//     node scripts/quota-package.mjs DIRECTORY
//
// The manifest and the README stand in src/quota. The code is what index.ts and the store contract import, compiled by
// `npm run build`. src/manifests goes to the folder manifests of the package. An import of a package ends the run: the
// engine has no dependencies.
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMPILED = join(ROOT, 'dist/src/quota');
const MANIFESTS = join(ROOT, 'dist/src/manifests');
const ENTRIES = ['index', 'store/contract'];
const DOCUMENTS = ['reference/quota.md', 'reference/arbitrator.md', 'design/optimistic-concurrency.md'];

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
for (const name of ['package.json', 'README.md']) await copyFile(join(ROOT, 'src/quota', name), join(target, name));
await copyFile(join(ROOT, 'LICENSE'), join(target, 'LICENSE'));
for (const name of DOCUMENTS) {
  const from = join(ROOT, 'docs', name);
  if (!existsSync(from)) throw new Error(`docs/${name} is missing`);
  await cp(from, join(target, 'docs', name));
}
console.log(`${modules.size} modules in ${target}`);
