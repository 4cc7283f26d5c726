import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { test } from 'tap';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const tracked = (...patterns: string[]): string[] =>
  execFileSync('git', ['ls-files', '--', ...patterns], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && !path.includes('/gen/'));

const WIDTH = 120;

/** The words of the glossary's second table. */
const retired = [
  ...(read('docs/design/glossary.md').split('## Retired words')[1] ?? '').matchAll(/^\| (?!retired|---)([^|]+) \|/gm),
]
  .flatMap(([, words = '']) => words.split(','))
  .map((word) => word.trim());
/** Part of a name (`card-hours`, `gpu.cards`, `cards/`) is not the word. */
const pattern = new RegExp(`(?<![\\w.\\-/])(${retired.join('|')})(?![\\w\\-/]|\\.\\w)`, 'iu');

/** Text without what is quoted as a name: code spans, code blocks, links' targets. */
const withoutNames = (text: string): string =>
  text
    .replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ' '))
    .replace(/`[^`\n]*`/g, ' ')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/"[^"\n]{1,30}"/g, ' ');

function found(path: string, text: string): string[] {
  return text.split('\n').flatMap((line, at) => {
    const match = pattern.exec(line);
    return match === null ? [] : [`${path}:${at + 1}: "${match[1]}" in: ${line.trim().slice(0, 90)}`];
  });
}

const known = new Map<string, string>();

/** The comments of a TypeScript file on their lines, everything else blank. */
function comments(path: string): string {
  const before = known.get(path);
  if (before !== undefined) return before;
  const text = read(path);
  const kept: string[] = text.split('').map((character) => (character === '\n' ? '\n' : ' '));
  const source = ts.createSourceFile('file.ts', text, ts.ScriptTarget.ES2022, false);
  const keep = (from: number, to: number): void => {
    for (let at = from; at < to; at += 1) kept[at] = text[at] ?? ' ';
  };
  const visit = (node: ts.Node): void => {
    for (const range of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []) keep(range.pos, range.end);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const found = kept.join('');
  known.set(path, found);
  return found;
}

/** The comments of a C file on their lines. */
function cComments(path: string): string {
  return read(path).replace(/(\/\*[\s\S]*?\*\/|\/\/.*)|[^\n]/g, (_, comment: string | undefined) => comment ?? ' ');
}

test('documents use no retired word', (t) => {
  const paths = tracked('README.md', 'CONTRIBUTING.md', 'docs/*.md').filter(
    (path) => path !== 'docs/design/glossary.md' && !path.startsWith('docs/benchmarks/'),
  );
  t.same(
    paths.flatMap((path) => found(path, withoutNames(read(path)))),
    [],
  );
  t.end();
});

test('comments use no retired word', (t) => {
  const inTypeScript = tracked('src/*.ts', 'test/*.ts', 'bench/*.ts', 'examples/*.ts');
  const inC = tracked('native/*.c', 'native/*.h', 'native/*.def');
  t.same(
    [
      ...inTypeScript.flatMap((path) => found(path, withoutNames(comments(path)))),
      ...inC.flatMap((path) => found(path, withoutNames(cComments(path)))),
    ],
    [],
  );
  t.end();
});

test('page code, protocols, pictures, alerts and dashboards use no retired word', (t) => {
  const paths = tracked(
    'src/page/*.js',
    'src/*/page/*',
    'src/agent/display/page/*',
    'src/page/parts/*',
    'proto/*.proto',
    'docs/*.svg',
    'etc/prometheus/*',
    'etc/grafana/*',
    'etc/xid-classes.json',
    'charts/*/templates/*',
  );
  t.same(
    paths.flatMap((path) => found(path, read(path))),
    [],
  );
  t.end();
});

/** Usage lines, drawings and examples keep their lines: they are indented like code. */
const isPreformatted = (line: string): boolean => /^\s*\* {3,}/.test(line);

test(`no comment is wider than ${WIDTH} columns`, (t) => {
  const wide = tracked('src/*.ts', 'test/*.ts', 'bench/*.ts')
    .filter((path) => path !== 'src/abi/vgpu-abi.ts')
    .flatMap((path) =>
      comments(path)
        .split('\n')
        .flatMap((line, at) => (line.trimEnd().length > WIDTH && !isPreformatted(line) ? [`${path}:${at + 1}`] : [])),
    );
  t.same(wide, []);
  t.end();
});

test('no two files export a reader of the same name', (t) => {
  const readers = new Map<string, string[]>();
  for (const path of tracked('src/*.ts')) {
    for (const [, name = ''] of read(path).matchAll(/^export (?:async )?function ((?:read|parse|decode)[A-Z]\w*)/gm)) {
      readers.set(name, [...(readers.get(name) ?? []), path]);
    }
  }
  t.same(
    [...readers].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths.join(', ')}`),
    [],
  );
  t.end();
});
