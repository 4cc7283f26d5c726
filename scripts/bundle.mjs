// Puts the commands and everything they import into a few files, so that an image needs no node_modules but the
// one native addon:
//
//     node scripts/bundle.mjs DIRECTORY [CPU [NODE_MODULES]]
//
// DIRECTORY then holds what `npm install` would have put there, as far as it is needed: the bundle at
// dist/src/cli/main.js, which finds etc/ and native/build/ where it would find them in the repository, koffi
// for this platform or that of CPU, and the licences of every package in it. The same sources give the same bytes.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { bundleCommands, KOFFI, licences, packagesIn, ROOT } from './bundle-parts.mjs';

const [target, cpu = process.arch, packageFolder = 'node_modules'] = process.argv.slice(2);
if (target === undefined) {
  console.error('usage: bundle.mjs DIRECTORY [CPU [NODE_MODULES]]');
  process.exit(2);
}

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const bundles = await bundleCommands(target);

const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const { name, version, description, license, type, engines, bin } = manifest;
await writeFile(
  join(target, 'package.json'),
  `${JSON.stringify({ name, version, description, license, type, engines, bin }, null, 2)}\n`,
);
// Read at run time.
for (const directory of ['etc', 'src/page/parts', 'src/agent/display/page', 'src/console/page'])
  await cp(join(ROOT, directory), join(target, directory), { recursive: true });
await copyKoffi();
await writeFile(
  join(target, 'LICENCES.md'),
  await licences([...new Set(bundles.flatMap(({ metafile }) => packagesIn(metafile))), join('node_modules', KOFFI)]),
);

/** koffi's JavaScript and its addon for the platform of the bundle, without its sources. */
async function copyKoffi() {
  const addon = join('@koromix', `koffi-${process.platform}-${cpu}`);
  for (const folder of [KOFFI, addon]) {
    const from = resolve(ROOT, packageFolder, folder);
    await cp(from, join(target, 'node_modules', folder), {
      recursive: true,
      filter: (path) => isNeeded(relative(from, path)),
    });
  }
}

/** Of koffi's files, those that are loaded, and its licence. */
function isNeeded(path) {
  const directory = /^(?:|src(?:\/koffi)?(?:\/src)?|[a-z]+_[a-z0-9]+)$/u;
  const loaded = /\.(?:c?js|node)$|^package\.json$/u;
  return directory.test(path) || loaded.test(path) || path.startsWith('LICENSE');
}
