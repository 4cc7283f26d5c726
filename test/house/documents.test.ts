import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MAIN = join(ROOT, 'dist/src/cli/main.js');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const documents = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs'), { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const blocks = documents.flatMap((path) =>
  [...read(path).matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text = '']) => ({ path, text })),
);
const commandLines = blocks
  .flatMap(({ path, text }) => text.split('\n').map((line) => ({ path, line: line.replace(/\s+#.*$/, '').trim() })))
  .filter(({ line }) => line !== '');

test('every link in a document has a target', (t) => {
  for (const path of documents) {
    for (const [, link = ''] of read(path).matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)) {
      t.ok(existsSync(resolve(ROOT, dirname(path), link)), `${path}: ${link}`);
    }
  }
  t.end();
});

test('the page of refusals has a row for every code', (t) => {
  const unionOf = (path: string, name: string): string[] => {
    const [, union = ''] = new RegExp(`type ${name} =\\n([\\s\\S]*?)\\n\\n`).exec(read(path)) ?? [];
    return [...union.matchAll(/^ {2}\| '([\w-]+)';?$/gm)].map(([, code = '']) => code);
  };
  const findings = /FINDING_CODES = \[([^\]]*)\]/.exec(read('src/agent/slices/audit/audit.ts'))?.[1] ?? '';
  const codes = [
    ...unionOf('src/gpu/request.ts', 'RefusalCode'),
    ...unionOf('src/quota/core/amounts/refusal.ts', 'Code').filter((code) => !['OK', 'NotManaged'].includes(code)),
    ...[...findings.matchAll(/^ {2}'([\w-]+)',$/gm)].map(([, code = '']) => code),
  ];
  t.ok(codes.length > 50);
  const rows = [...read('docs/reference/refusals.md').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, code = '']) => code);
  t.same(rows.sort(), codes.sort());
  t.end();
});

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  const text = heading
    .trim()
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return text.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
}

test('every link to a section names a heading', (t) => {
  for (const path of documents) {
    for (const [, file = '', anchor = ''] of read(path).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)) {
      const target = file === '' ? path : relative(ROOT, resolve(ROOT, dirname(path), file));
      if (!target.endsWith('.md')) continue;
      const text = read(target).replace(/^```[\s\S]*?^```/gm, '');
      const anchors = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
      t.ok(anchors.includes(anchor), `${path}: ${file}#${anchor}`);
    }
  }
  t.end();
});

test("every npm script, file and command in a document's instructions exists", (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const commands = new Set(
    [...execFileSync(process.execPath, [MAIN, '--help'], { encoding: 'utf8' }).matchAll(/^ {2}(\w+)/gm)].map(
      ([, name]) => name,
    ),
  );
  for (const { path, line } of commandLines) {
    for (const [, name = ''] of line.matchAll(/\bnpm run (?:-s )?([\w:-]+)/g))
      t.ok(name in scripts, `${path}: npm run ${name}`);
    for (const [, name = ''] of line.matchAll(/^gpu-manager ([a-z]+)\b/g))
      t.ok(commands.has(name), `${path}: gpu-manager ${name}`);
    for (const [file = ''] of line.matchAll(/(?<=^|\s|\()(?:etc|charts|scripts|docs)\/[\w./-]+|\bdaemonset\.yaml/g))
      t.ok(existsSync(join(ROOT, file)), `${path}: ${file}`);
  }
  t.end();
});

test('every guide from another project has the same steps, and a test that runs its commands', (t) => {
  const guides = readdirSync(join(ROOT, 'docs/guides')).filter((name) => name.startsWith('from-'));
  t.same(guides, ['from-hami.md', 'from-kai.md', 'from-time-slicing.md', 'from-tkestack.md']);
  for (const name of guides) {
    const headings = [...read(`docs/guides/${name}`).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    for (const step of ['Side by side', 'Run both on one cluster', 'Move a node', 'Go back'])
      t.ok(headings.includes(step), `${name}: ${step}`);
    t.ok(read('test/e2e/guides.e2e.ts').includes(`'${name}'`), name);
  }
  t.end();
});

/** Words of a promise without exceptions. */
const ABSOLUTE = /\b(never|always|to the byte|by a byte|no step|no race|under no circumstances)\b/i;

test('a promise without exceptions names the test that checks it', (t) => {
  for (const path of ['README.md', 'docs/design/architecture.md', 'docs/reference/comparison.md']) {
    const paragraphs = read(path).split(/\n\n|\n(?=[|-] )/);
    const unproven = paragraphs.filter(
      (text) => ABSOLUTE.test(text.replace(/`[^`]*`/g, '')) && !/`?test\/[\w./-]+/.test(text),
    );
    t.same(unproven, [], path);
  }
  t.end();
});

test('docs/reference/flags.md equals the table of flags', (t) => {
  t.equal(
    read('docs/reference/flags.md'),
    execFileSync(process.execPath, [join(ROOT, 'scripts/flag-table.mjs')], { encoding: 'utf8' }),
    'npm run docs:flags writes the file',
  );
  t.end();
});

test('every source file that the architecture names exists', (t) => {
  const named = [...read('docs/design/architecture.md').matchAll(/`((?:[a-z-]+\/)+[\w.-]+\.(?:ts|js|c))`/g)].map(
    ([, path = '']) => path,
  );
  t.ok(named.length > 30);
  t.same(
    named.filter((path) => !['src', '.'].some((root) => existsSync(join(ROOT, root, path)))),
    [],
  );
  t.end();
});

test('every test that a document names exists, and each fault has a test', (t) => {
  for (const path of documents) {
    for (const [file] of read(path).matchAll(/\b(?:test\/[\w./-]+\.(?:test|long|e2e)\.ts|native\/test\/\w+\.c)\b/g))
      t.ok(existsSync(join(ROOT, file)), `${path}: ${file}`);
  }
  const rows = read('docs/reference/faults.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| fault |'));
  t.ok(rows.length > 10, `${rows.length} faults`);
  t.same(
    rows.filter((row) => !/`(?:native\/)?test\/[\w./-]+`/.test(row)),
    [],
  );
  t.end();
});

test('every alert has a runbook, and every runbook an alert', (t) => {
  const alerts = ['etc/prometheus/rules.yaml', 'etc/prometheus/quota-rules.yaml'].flatMap((path) =>
    [...read(path).matchAll(/^ +- alert: (\w+)\n(?:(?! +- alert:).*\n)*? +runbook: "(.*)"$/gm)].map(
      ([, name = '', runbook = '']) => ({ name, runbook }),
    ),
  );
  const count = ['rules', 'quota-rules'].flatMap(
    (name) => read(`etc/prometheus/${name}.yaml`).match(/- alert:/g) ?? [],
  ).length;
  t.equal(alerts.length, count, 'alerts with a runbook');
  const sections = read('docs/guides/runbooks.md').split(/^### /m).slice(1);
  t.same(sections.map((text) => text.split('\n', 1)[0]).sort(), alerts.map(({ name }) => name).sort());
  for (const { name, runbook } of alerts) t.equal(runbook, `docs/guides/runbooks.md#${name.toLowerCase()}`);
  for (const text of sections)
    for (const part of ['**Means.**', '**Look at.**', '**Do.**'])
      t.ok(text.includes(part), `${text.slice(0, 40)}: ${part}`);
  t.end();
});
