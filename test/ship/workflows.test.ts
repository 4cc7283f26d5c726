import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { parse } from 'yaml';
import { missingProgram, read, ROOT } from './rendering.js';

const WORKFLOWS = '.github/workflows';

test('actionlint finds nothing in the workflows', { skip: missingProgram('actionlint', '-version') }, (t) => {
  const files = readdirSync(join(ROOT, WORKFLOWS)).map((name) => join(WORKFLOWS, name));
  t.ok(files.length >= 2);
  const { status, stdout } = spawnSync('actionlint', ['-no-color', ...files], { cwd: ROOT, encoding: 'utf8' });
  t.equal(stdout, '');
  t.equal(status, 0);
  t.end();
});

test('a release names its registry once, builds both architectures, and pushes image and chart there', (t) => {
  const text = read(join(WORKFLOWS, 'release.yml'));
  t.equal(text.match(/vars\.REGISTRY/g)?.length, 1);
  const { env } = parse(text) as { readonly env: Readonly<Record<string, string>> };
  t.match(env['REGISTRY'], /vars\.REGISTRY/);
  t.match(text, /--platform linux\/amd64,linux\/arm64/);
  t.match(text, /helm push .*"oci:\/\/\$REGISTRY_PATH\/charts"/);
  t.match(text, /scripts\/release-notes\.mjs/);
  t.match(text, /sha256sum/);
  t.ok(text.indexOf('demo --once') < text.indexOf('helm push'), 'the image is run before the chart names it');
  t.end();
});

test('continuous integration runs what .ci/run runs, and builds the image of the Dockerfile', (t) => {
  const text = read(join(WORKFLOWS, 'ci.yml'));
  t.match(text, /- run: \.ci\/run/);
  t.match(text, /docker run .*demo --once/);
  t.match(text, /scripts\/test-arm64/);
  t.match(text, /scripts\/test-image packages/);
  t.end();
});
