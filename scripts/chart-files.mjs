// Writes README.md of the chart from the comments of values.yaml, and daemonset.yaml, which kubectl can apply by its address
// only as a file of its own, not as a symbolic link. What the chart has from etc/ are links, which helm follows.
//
//     node scripts/chart-files.mjs          writes them
//     node scripts/chart-files.mjs --check  exit code 1 if a file differs
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMap, parseDocument } from 'yaml';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CHART = 'charts/gpu-manager';

/** The manifest that users apply by its address, and where it is written. */
const MANIFEST = 'etc/agent/daemonset.yaml';
const MANIFEST_COPY = 'daemonset.yaml';

const HEAD = `# The chart of gpu-manager

The node agent, and where they are enabled the device plugin proxy, the scheduler extender, the console and quota. [docs/guides/install.md](../../docs/guides/install.md) says how to
build and push the image that it names, and how to install, upgrade and uninstall the chart.

\`\`\`sh
helm install gpu-manager charts/gpu-manager --namespace kube-system --set image.registry=registry.example.com/gpu
\`\`\`

helm refuses values that \`values.schema.json\` does not know. \`npm run docs:chart\` writes this table from the comments of \`values.yaml\`.

| value | default | meaning |
|---|---|---|
`;

const values = parseDocument(await readFile(join(ROOT, CHART, 'values.yaml'), 'utf8'));
const rows = rowsOf(values.contents, '');
const wrong = rows.filter(({ meaning }) => meaning === '');
if (wrong.length > 0) throw new Error(`values without a comment: ${wrong.map(({ path }) => path).join(', ')}`);
const table = rows.map(({ path, value, meaning }) => `| \`${path}\` | ${printed(value)} | ${meaning} |\n`).join('');
const files = [
  [`${CHART}/README.md`, HEAD + table],
  [MANIFEST_COPY, await readFile(join(ROOT, MANIFEST), 'utf8')],
];

for (const [name, text] of files) {
  const path = join(ROOT, name);
  if (!process.argv.includes('--check')) await writeFile(path, text);
  else if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
    console.error(`${name} is out of date: npm run docs:chart`);
    process.exitCode = 1;
  }
}

/** A row for each value. A map whose keys have no comments is one value. */
function rowsOf(map, prefix) {
  return map.items.flatMap(({ key, value }, index) => {
    const path = `${prefix}${key.value}`;
    const inherited = index === 0 ? map.commentBefore : undefined;
    const meaning = (key.commentBefore ?? inherited ?? '').replace(/\s*\n\s*/gu, ' ').trim();
    return isMap(value) && isDivided(value)
      ? rowsOf(value, `${path}.`)
      : [{ path, value: value.toJS(values), meaning: meaning.replaceAll('|', String.raw`\|`) }];
  });
}

function isDivided(map) {
  return (
    map.commentBefore !== undefined ||
    map.items.some(({ key, value }) => key.commentBefore !== undefined || (isMap(value) && isDivided(value)))
  );
}

function printed(value) {
  return `\`${JSON.stringify(value)}\``;
}
