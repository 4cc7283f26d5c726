// Prints the list of packages that ship, as CycloneDX: those that the bundles of the commands are made of, and koffi with
// its addons for the platforms of the image. npm's own list follows edges of the lock file and leaves out packages that
// are also needed for development. The same sources give the same bytes.
import { Buffer } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleCommands, KOFFI, packagesIn, ROOT } from './bundle-parts.mjs';

/** Those of the image, as npm calls them. */
const ADDONS = ['linux-x64', 'linux-arm64'].map((platform) => `@koromix/koffi-${platform}`);

const { name, version, description, license } = await json('package.json');
const locked = (await json('package-lock.json')).packages;
const bundles = await bundleCommands(ROOT, { write: false });
const folders = new Set(bundles.flatMap(({ metafile }) => packagesIn(metafile)));
for (const addition of [KOFFI, ...ADDONS]) folders.add(`node_modules/${addition}`);
const components = await Promise.all([...folders].sort().map(component));

console.log(
  JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      version: 1,
      metadata: { component: { type: 'application', ...identity(name, version), description, ...licensed(license) } },
      components,
    },
    null,
    2,
  ),
);

/** What the lock file says of the package in a folder. */
async function component(folder) {
  const entry = locked[folder];
  if (entry === undefined)
    throw new Error(`expected ${folder} in package-lock.json, which has no such entry: run npm ci`);
  const title = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const [, hash] = /^sha512-(.+)$/u.exec(entry.integrity);
  return {
    type: 'library',
    ...identity(title, entry.version),
    hashes: [{ alg: 'SHA-512', content: Buffer.from(hash, 'base64').toString('hex') }],
    ...licensed(entry.license ?? (await olderLicence(folder))),
  };
}

function identity(title, versionOf) {
  const purl = `pkg:npm/${title.replace('@', '%40')}@${versionOf}`;
  return { 'bom-ref': purl, name: title, version: versionOf, purl };
}

function licensed(expression) {
  return expression === undefined ? {} : { licenses: [{ expression }] };
}

/** The licence in a form that npm does not copy into the lock file. */
async function olderLicence(folder) {
  const { license, licenses } = await json(join(folder, 'package.json'));
  return license?.type ?? licenses?.[0]?.type;
}

async function json(path) {
  return JSON.parse(await readFile(join(ROOT, path), 'utf8'));
}
