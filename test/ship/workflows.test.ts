import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { parse } from 'yaml';
import { inOrder } from './in-order.js';
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

test('a release names its registry once, and is one command that a rehearsal runs too', (t) => {
  const text = read(join(WORKFLOWS, 'release.yml'));
  t.equal(text.match(/vars\.REGISTRY/g)?.length, 1);
  const { env } = parse(text) as { readonly env: Readonly<Record<string, string>> };
  t.match(env['REGISTRY'], /vars\.REGISTRY/);
  t.match(text, /npm run release -- build\/release "\$REGISTRY_PATH"/);
  t.match(read('scripts/rehearse-release'), /^scripts\/release "\$directory" "127\.0\.0\.1:\$port/m);
  t.notMatch(text, /helm push|cosign sign|buildx build/, 'what the rehearsal does not run');
  t.end();
});

test('a release pushes both architectures, runs the image before the chart names it, signs, and verifies', (t) => {
  const [release, image] = [read('scripts/release'), read('scripts/release-image')];
  t.match(image, /docker buildx build --push --platform linux\/amd64,linux\/arm64/);
  t.match(image, /docker run --rm --pull always "\S+" demo --once/);
  const steps = [
    'node scripts/release-notes.mjs',
    '$(scripts/release-image',
    'node scripts/release-chart.mjs',
    'helm push',
    'cosign sign --recursive',
    'sha256sum -- *',
    'cosign verify-attestation',
    'cosign verify-blob',
  ];
  inOrder(t, release, steps);
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
