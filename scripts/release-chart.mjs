// Writes the chart as it is published:
//
//     node scripts/release-chart.mjs DIRECTORY REGISTRY REPOSITORY_URL DIGEST
//
// The copy names the registry and the digest of the image, so that `helm install oci://REGISTRY/charts/gpu-manager` needs
// no value, and what catalogues of charts show: icon, home, sources, and the annotations of Artifact Hub.
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDocument, stringify } from 'yaml';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const [directory, registry, repository, digest] = process.argv.slice(2);
if (!/^https:\/\/[^/]+\/./u.test(repository ?? '') || !/^sha256:[0-9a-f]{64}$/u.test(digest ?? '')) {
  console.error(
    'usage: release-chart.mjs DIRECTORY REGISTRY REPOSITORY_URL DIGEST, with a URL such as https://github.com/me/it and the digest of the image',
  );
  process.exit(2);
}
await cp(join(ROOT, 'charts/gpu-manager'), directory, { recursive: true });

const values = await document('values.yaml');
values.setIn(['image', 'registry'], registry);
values.setIn(['image', 'digest'], digest);
await writeFile(join(directory, 'values.yaml'), String(values));

const chart = await document('Chart.yaml');
const version = chart.get('version');
// The comment is about this script.
for (const { key } of chart.contents.items) key.commentBefore = null;
chart.set('icon', `${repository}/raw/v${version}/docs/icon.svg`);
chart.set('home', repository);
chart.set('sources', [repository]);
const annotations = {
  ...chart.toJS().annotations,
  'artifacthub.io/images': stringify([
    { name: 'gpu-manager', image: `${registry}/gpu-manager@${digest}`, platforms: ['linux/amd64', 'linux/arm64'] },
  ]),
  'artifacthub.io/links': stringify([
    { name: 'Install', url: `${repository}/blob/v${version}/docs/guides/install.md` },
    { name: 'Changes', url: `${repository}/blob/v${version}/CHANGELOG.md` },
  ]),
  'artifacthub.io/prerelease': String(String(version).includes('-')),
};
chart.set('annotations', annotations);
await writeFile(join(directory, 'Chart.yaml'), String(chart));

async function document(name) {
  return parseDocument(await readFile(join(directory, name), 'utf8'));
}
