import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const WORKFLOWS = join(ROOT, '.github/workflows');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const linter = spawnSync('actionlint', ['--version'], { encoding: 'utf8' });
const skip = linter.status === 0 ? false : 'actionlint is not installed: scripts/install-tools installs it';

test('actionlint has no objection to the workflows', { skip }, (t) => {
  const files = readdirSync(WORKFLOWS).map((name) => join(WORKFLOWS, name));
  const { status, stdout } = spawnSync('actionlint', files, { encoding: 'utf8' });
  t.equal(stdout, '');
  t.equal(status, 0);
  t.end();
});

test('the workflow runs the end-to-end tests on every version of the table, and CI on the newest', (t) => {
  const workflow = parse(read('.github/workflows/ci.yml')) as {
    readonly jobs: Readonly<
      Record<string, { readonly strategy?: { readonly matrix: { readonly kubernetes: readonly string[] } } }>
    >;
  };
  const matrix = workflow.jobs['end-to-end']?.strategy?.matrix.kubernetes ?? [];
  const header = /^\| file of test\/e2e \|(.*)$/m.exec(read('docs/reference/comparison.md'))?.[1] ?? '';
  const table = [...header.matchAll(/(1\.\d+)\.\d+, containerd/g)].map((match) => match[1] ?? '');
  t.ok(table.length >= 3, header);
  t.same([...matrix].sort(), [...table].sort());
  t.equal(/^kubernetes_version=(.*)$/m.exec(read('.ci/run'))?.[1], table[0]);
  t.end();
});
