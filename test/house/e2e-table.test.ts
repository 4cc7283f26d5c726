import { spawnSync } from 'node:child_process';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { scratchDirectory } from '../scratch.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SCRIPT = join(ROOT, 'scripts/e2e-table.mjs');

const DOCUMENT = `before
| file of test/e2e | 1.37.2, containerd 2.3.7 | 1.36.3 |
|---|---|---|
| agent | 1 of 1 | 26 of 26 |
| faults, 60 s | - | 5 of 5 |
after
`;

const RUN = `# agent.e2e.js on Kubernetes 1.37
TAP version 14
1..7
# { total: 27, pass: 26, skip: 1 }
# time=65648.121ms
# console.e2e.js on Kubernetes 1.37
# { total: 30, pass: 28, fail: 2 }
# faults.e2e.js on Kubernetes 1.37
TAP version 14
# failed: console.e2e.js on 1.37
# end-to-end: 1 of 3 files passed
`;

test('a run of the end-to-end tests becomes a column of the table, also what failed or did not end', async (t) => {
  const directory = await scratchDirectory(t);
  const [run, document] = [join(directory, 'e2e.tap'), join(directory, 'comparison.md')];
  await writeFile(run, RUN);
  await writeFile(document, DOCUMENT);
  t.equal(spawnSync(process.execPath, [SCRIPT, run, document]).status, 0);
  t.equal(
    await readFile(document, 'utf8'),
    `before
| file of test/e2e | 1.37.2, containerd 2.3.7 | 1.36.3 |
|---|---|---|
| agent | 26 of 26, 1 skipped | 26 of 26 |
| faults, 60 s | **did not end** | 5 of 5 |
| console | **28 of 30** | - |
after
`,
  );
});

test('the table has one row for each end-to-end file, and no other', async (t) => {
  const document = await readFile(join(ROOT, 'docs/reference/comparison.md'), 'utf8');
  const [, table = ''] = /^\| file of test\/e2e \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/mu.exec(document) ?? [];
  const rows = [...table.matchAll(/^\| ([\w-]+)/gmu)].map(([, name]) => name);
  const files = (await readdir(join(ROOT, 'test/e2e'))).flatMap((name) => /^(.+)\.e2e\.ts$/u.exec(name)?.[1] ?? []);
  t.ok(files.length > 20, `${files.length} files`);
  t.same(rows.sort(), files.sort());
});
