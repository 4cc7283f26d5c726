// Puts the commands and everything they import into one file, so that an image needs no node_modules but the one native
// addon:
//
//     node scripts/bundle.mjs DIRECTORY [CPU [NODE_MODULES]]
//
// DIRECTORY then holds what `npm install` would have put there, as far as it is needed: the bundle at
// dist/src/cli/main.js, which finds proto/, etc/ and native/build/ where it would find them in the repository, koffi
// for this platform or that of CPU, and the licences of every package in it. The same sources give the same bytes:
// nothing in it depends on the time, the machine or the path.
import { build } from 'esbuild';
import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Loads a compiled library, which cannot be part of a JavaScript file. */
const KOFFI = 'koffi';

const [target, cpu = process.arch, packageFolder = 'node_modules'] = process.argv.slice(2);
if (target === undefined) {
  console.error('usage: bundle.mjs DIRECTORY [CPU [NODE_MODULES]]');
  process.exit(2);
}

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  // The second is the plugin of kubectl, the third a program that `doctor` starts.
  entryPoints: ['dist/src/cli/main.js', 'dist/src/cli/kubectl-gpu.js', 'dist/src/agent/interposition-probe.js'],
  outbase: 'dist/src',
  outdir: join(target, 'dist/src'),
  splitting: true,
  // As deep as the files that they are made of, which find others from where they are.
  chunkNames: 'cli/[name]-[hash]',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  // The last two are accelerators that their users do without; nothing here speaks SSH.
  external: [KOFFI, 'cpu-features', '*.node'],
  // Packages of the older module system ask for these.
  banner: {
    js: [
      "import { createRequire as bundleRequire } from 'node:module';",
      "import { fileURLToPath as bundlePath } from 'node:url';",
      'const require = bundleRequire(import.meta.url);',
      'const __filename = bundlePath(import.meta.url);',
      "const __dirname = bundlePath(new URL('.', import.meta.url));",
    ].join('\n'),
  },
  // Names stay as they are, for stacks that can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
});

const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const { name, version, description, license, type, engines, bin } = manifest;
await writeFile(
  join(target, 'package.json'),
  `${JSON.stringify({ name, version, description, license, type, engines, bin }, null, 2)}\n`,
);
// Read at run time.
for (const directory of ['proto', 'etc', 'src/page/parts', 'src/agent/display/page', 'src/console/page'])
  await cp(join(ROOT, directory), join(target, directory), { recursive: true });
const packages = packagesIn(Object.keys(metafile.inputs));
await copyKoffi();
await writeFile(join(target, 'LICENCES.md'), await licences([...packages, join('node_modules', KOFFI)]));

/** Folders of the packages that the bundle's inputs belong to. */
function packagesIn(inputs) {
  const folders = inputs.flatMap((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []);
  return [...new Set(folders)].sort();
}

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

/** What ships, by package: version, licence, and the licence's text where the package has one. */
async function licences(folders) {
  const sections = await Promise.all(
    folders.map(async (folder) => {
      const at = join(ROOT, folder);
      const { name, version, license } = JSON.parse(await readFile(join(at, 'package.json'), 'utf8'));
      const file = (await readdir(at)).find((entry) => /^licen[cs]e/iu.test(entry));
      const text = file === undefined ? '' : `\n${(await readFile(join(at, file), 'utf8')).trim()}\n`;
      return { title: `${name} ${version}`, text: `## ${name} ${version}: ${license ?? 'see below'}\n${text}` };
    }),
  );
  sections.sort((a, b) => (a.title < b.title ? -1 : 1));
  return `# Packages in this bundle\n\n${sections.map(({ text }) => text).join('\n')}`;
}
