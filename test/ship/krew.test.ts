import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type Test } from 'tap';
import { parse } from 'yaml';
import * as z from 'zod';
import { scratchDirectory } from '../scratch.js';
import { inOrder } from './in-order.js';
import { missingProgram, read, ROOT } from './rendering.js';

const REPOSITORY = 'https://example.com/me/gpu-manager';
const { version } = JSON.parse(read('package.json')) as { readonly version: string };
const OURS = { arch: process.arch === 'arm64' ? 'arm64' : 'amd64', os: 'linux' };

/** What krew demands of a manifest, and the index of krew of its short description. */
const Manifest = z.strictObject({
  apiVersion: z.literal('krew.googlecontainertools.github.com/v1alpha2'),
  kind: z.literal('Plugin'),
  metadata: z.strictObject({ name: z.string().regex(/^[\w-]+$/) }),
  spec: z.strictObject({
    version: z.string().regex(/^v\d+\.\d+\.\d+(-[\w.]+)?$/),
    homepage: z.url(),
    shortDescription: z
      .string()
      .min(1)
      .max(50)
      .regex(/^[^\r\n]+[^.\r\n]$/),
    description: z.string().min(1),
    caveats: z.string().min(1),
    platforms: z
      .array(
        z.strictObject({
          selector: z.strictObject({
            matchLabels: z.strictObject({ os: z.enum(['linux', 'darwin']), arch: z.enum(['amd64', 'arm64']) }),
          }),
          uri: z.url(),
          sha256: z.string().regex(/^[a-f0-9]{64}$/),
          bin: z.string().min(1),
        }),
      )
      .min(1),
  }),
});

/** Two platforms; for each Node.js stands a small program that starts the Node.js of this test. */
async function built(t: Test): Promise<{ readonly directory: string; readonly manifest: z.infer<typeof Manifest> }> {
  const scratch = await scratchDirectory(t);
  const [nodes, directory] = [join(scratch, 'nodes'), join(scratch, 'krew')];
  for (const platform of [`linux-${process.arch}`, 'darwin-arm64']) {
    const at = join(nodes, platform);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'node'), `#!/bin/sh\nNODE_PLATFORM=${platform} exec '${process.execPath}' "$@"\n`);
    chmodSync(join(at, 'node'), 0o755);
    writeFileSync(join(at, 'LICENSE'), 'of Node.js\n');
  }
  execFileSync(process.execPath, [join(ROOT, 'scripts/krew.mjs'), directory, REPOSITORY, nodes]);
  return { directory, manifest: Manifest.parse(parse(readFileSync(join(directory, 'gpu.yaml'), 'utf8'))) };
}

/** What the plugin of an installation prints, called as kubectl calls it. */
function helpOf(bin: string): string {
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: '/nonexistent' };
  return execFileSync('kubectl-gpu', ['--help'], { env, encoding: 'utf8', cwd: '/' });
}

test('the manifest for krew names an archive of this version for each platform, with its hash', async (t) => {
  const { directory, manifest } = await built(t);
  const { metadata, spec } = manifest;
  t.equal(metadata.name, 'gpu', 'the plugin is kubectl gpu');
  t.equal(spec.version, `v${version}`);
  t.same(
    readdirSync(directory).sort(),
    ['gpu.yaml', ...spec.platforms.map(({ uri }) => uri.slice(uri.lastIndexOf('/') + 1))].sort(),
  );
  for (const { uri, sha256, selector } of spec.platforms) {
    const { os, arch } = selector.matchLabels;
    const file = `kubectl-gpu-${version}-${os}-${arch}.tar.gz`;
    t.equal(uri, `${REPOSITORY}/releases/download/v${version}/${file}`);
    t.equal(
      createHash('sha256')
        .update(readFileSync(join(directory, file)))
        .digest('hex'),
      sha256,
    );
  }
  t.equal(new Set(spec.platforms.map(({ sha256 }) => sha256)).size, 2, 'each archive has the Node.js of its platform');

  const unpacked = await scratchDirectory(t);
  const bin = join(unpacked, 'bin');
  mkdirSync(bin);
  execFileSync('tar', ['-xzf', join(directory, `kubectl-gpu-${version}-linux-${OURS.arch}.tar.gz`), '-C', unpacked]);
  for (const file of ['LICENSE', 'LICENCES.md', 'node/LICENSE']) t.ok(readFileSync(join(unpacked, file), 'utf8'), file);
  // krew links by an absolute path; a user may link that link by a relative one.
  symlinkSync(join(unpacked, spec.platforms[0]?.bin ?? ''), join(unpacked, 'linked'));
  symlinkSync('../linked', join(bin, 'kubectl-gpu'));
  t.match(helpOf(bin), /^Usage: kubectl gpu \[options\] \[command\]\n/);
  const ended = spawnSync(join(bin, 'kubectl-gpu'), ['nodes', '--kubeconfig', '/nonexistent/config'], {
    encoding: 'utf8',
  });
  t.match(ended, { status: 2, stderr: /^kubectl gpu: --kubeconfig: .*no such/ });

  await t.test('krew installs it', { skip: missingProgram('kubectl-krew', 'version') }, (krew) => {
    const env = { ...process.env, KREW_ROOT: join(unpacked, 'krew') };
    const archive = join(directory, `kubectl-gpu-${version}-linux-${OURS.arch}.tar.gz`);
    const { status, stderr } = spawnSync(
      'kubectl-krew',
      ['install', `--manifest=${join(directory, 'gpu.yaml')}`, `--archive=${archive}`],
      { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    );
    krew.equal(status, 0, stderr);
    krew.match(stderr, /Installed plugin: gpu\n/);
    krew.match(helpOf(join(unpacked, 'krew/bin')), /^Usage: kubectl gpu \[options\] \[command\]\n/);
    krew.end();
  });
});

test('the release builds the archives of all platforms, installs one by krew, and publishes them with the manifest', (t) => {
  const release = read('scripts/release');
  const fetched = read('scripts/fetch-node');
  const [, platforms = ''] = /^for platform in (.*); do$/m.exec(fetched) ?? [];
  t.same(platforms.split(' '), ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64']);
  t.match(fetched, /sha256sum --check/);
  const steps = [
    'scripts/fetch-node "$NODES"',
    'scripts/krew.mjs "$directory"',
    'kubectl-krew install --manifest',
    'sha256sum -- *',
  ];
  inOrder(t, release, steps);
  t.end();
});

test('the manifest is not made for an address that is none', async (t) => {
  const directory = await scratchDirectory(t);
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/krew.mjs'), directory, 'gpu-manager'], {
    encoding: 'utf8',
  });
  t.equal(status, 2);
  t.match(stderr, /^usage: krew\.mjs DIRECTORY REPOSITORY_URL/);
});
