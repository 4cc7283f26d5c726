// Makes what krew, the plugin manager of kubectl, installs as `kubectl gpu`:
//
//     node scripts/krew.mjs DIRECTORY REPOSITORY_URL [NODE_DIRECTORY]
//
// DIRECTORY then holds an archive for each platform, and gpu.yaml, the manifest, with the hash of each archive and the
// address that it has in the release of this version. An archive contains the plugin and a Node.js, so that users need
// to install none. NODE_DIRECTORY has a folder for each platform (linux-x64, darwin-arm64, ...) with the files `node`
// and `LICENSE`, as scripts/fetch-node makes it; without it there is one archive, with the Node.js that runs this
// script. The same sources and the same Node.js give the same bytes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { build } from 'esbuild';
import { stringify } from 'yaml';
import { bundleOptions, licences, packagesIn, ROOT } from './bundle-parts.mjs';

/** Platforms by the names that Node.js has for them; kubectl starts plugins for Windows only as .exe files. */
const PLATFORMS = {
  'linux-x64': { os: 'linux', arch: 'amd64' },
  'linux-arm64': { os: 'linux', arch: 'arm64' },
  'darwin-x64': { os: 'darwin', arch: 'amd64' },
  'darwin-arm64': { os: 'darwin', arch: 'arm64' },
};
const PROGRAM = 'dist/src/cli/kubectl-gpu.js';

/** krew installs a link to this program. */
const LAUNCHER = `#!/bin/sh
set -eu
self=$0
while [ -L "$self" ]; do
  link=$(readlink "$self")
  case $link in
    /*) self=$link ;;
    *) self=$(dirname "$self")/$link ;;
  esac
done
here=$(cd "$(dirname "$self")" && pwd -P)
exec "$here/node/node" "$here/${PROGRAM}" "$@"
`;

const [target, repository, nodes] = process.argv.slice(2);
if (target === undefined || !/^https:\/\/[^/]+\/./u.test(repository ?? '')) {
  console.error(
    'usage: krew.mjs DIRECTORY REPOSITORY_URL [NODE_DIRECTORY], with a URL such as https://github.com/me/it',
  );
  process.exit(2);
}
const { version, license } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const scratch = await mkdtemp(join(tmpdir(), 'krew-'));
try {
  await mkdir(target, { recursive: true });
  const plugin = join(scratch, 'plugin');
  await makePlugin(plugin);
  const platforms = [];
  for (const [platform, node] of await nodeFolders()) {
    const { os, arch } = PLATFORMS[platform];
    const file = `kubectl-gpu-${version}-${os}-${arch}.tar.gz`;
    await cp(node, plugin, { recursive: true, force: true });
    pack(plugin, join(target, file));
    platforms.push({
      selector: { matchLabels: { os, arch } },
      uri: `${repository}/releases/download/v${version}/${file}`,
      sha256: await sha256(join(target, file)),
      bin: 'kubectl-gpu',
    });
  }
  await writeFile(join(target, 'gpu.yaml'), stringify(manifest(platforms), { lineWidth: 0 }));
} finally {
  await rm(scratch, { recursive: true });
}

/** The plugin without Node.js. */
async function makePlugin(directory) {
  const { metafile } = await build(bundleOptions(directory, [PROGRAM]));
  // The version is read from it; and it says that the files are modules.
  await writeFile(
    join(directory, 'package.json'),
    `${JSON.stringify({ name: 'kubectl-gpu', version, license, type: 'module' }, null, 2)}\n`,
  );
  await cp(join(ROOT, 'LICENSE'), join(directory, 'LICENSE'));
  await writeFile(join(directory, 'LICENCES.md'), await licences(packagesIn(metafile)));
  await writeFile(join(directory, 'kubectl-gpu'), LAUNCHER, { mode: 0o755 });
}

/** For each platform a folder that contains the folder `node`. */
async function nodeFolders() {
  const folders = [];
  const platforms = nodes === undefined ? [`${process.platform}-${process.arch}`] : (await readdir(nodes)).sort();
  for (const platform of platforms) {
    if (PLATFORMS[platform] === undefined)
      throw new Error(`${platform}: expected folders named ${Object.keys(PLATFORMS).join(', ')}`);
    const folder = join(scratch, platform);
    if (nodes === undefined) await cp(process.execPath, join(folder, 'node/node'), { dereference: true });
    else await cp(join(nodes, platform), join(folder, 'node'), { recursive: true });
    folders.push([platform, folder]);
  }
  return folders;
}

/** An archive that depends only on the content of the files and on which of them can be run. */
function pack(directory, archive) {
  const fixed = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX'];
  execFileSync('tar', [...fixed, '--use-compress-program=gzip -n', '-cf', archive, '-C', directory, '.']);
}

async function sha256(file) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function manifest(platforms) {
  return {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'gpu' },
    spec: {
      version: `v${version}`,
      homepage: repository,
      shortDescription: 'See and share the GPUs of a cluster',
      description: `Shows the GPUs of a cluster that gpu-manager shares between containers: nodes, slices, pods,
limits, events and quota; sets the limits of running pods, and checks nodes.
It reads the agents through the API server, with your kubeconfig.
`,
      caveats: `Install the agents of gpu-manager in the cluster first.
The archive contains Node.js, so you need not install it; on Linux it needs glibc 2.28 or later.
Completion, with kubectl 1.26 and later:
  printf '#!/bin/sh\\nexec kubectl-gpu __complete "$@"\\n' > ~/.krew/bin/kubectl_complete-gpu
  chmod +x ~/.krew/bin/kubectl_complete-gpu
`,
      platforms,
    },
  };
}
