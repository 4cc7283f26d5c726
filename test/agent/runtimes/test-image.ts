import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A static program that is a shell with its usual commands; the Debian package busybox-static. */
const BUSYBOX = '/bin/busybox';

/** Name of the image in the runtimes. */
export const TEST_IMAGE = 'docker.io/gpu-manager/test:1';

const COMMANDS = ['sh', 'ls', 'cat', 'sleep', 'env', 'id', 'mount', 'grep', 'touch', 'kill', 'test', 'true'];

/** A file of the machine to add to the image, by default at the same path. */
export interface ImageFile {
  readonly from: string;
  readonly to?: string;
}

/** Reason why no image can be made here, or false. */
export function imageSkipReason(): string | false {
  return existsSync(BUSYBOX) ? false : `needs ${BUSYBOX}, statically linked (Debian: busybox-static)`;
}

/** Makes the root file system of the image below `directory`: busybox and the given files. */
export function buildRootFileSystem(directory: string, files: readonly ImageFile[] = []): string {
  const root = join(directory, 'rootfs');
  for (const name of ['bin', 'tmp', 'etc', 'proc', 'sys', 'dev']) mkdirSync(join(root, name), { recursive: true });
  copyFileSync(BUSYBOX, join(root, 'bin/busybox'));
  for (const command of COMMANDS) symlinkSync('busybox', join(root, 'bin', command));
  for (const { from, to = from } of files) {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    copyFileSync(from, join(root, to));
  }
  return root;
}

/** Packs a root file system into one layer; returns the tar file. */
export function packLayer(directory: string, root: string): string {
  const layer = join(directory, 'layer.tar');
  execFileSync('tar', ['-C', root, '--owner=0', '--group=0', '--numeric-owner', '-cf', layer, '.']);
  return layer;
}

/** The configuration of an image for its containers. */
export interface ImageConfig {
  readonly Entrypoint?: readonly string[];
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly User?: string;
}

const TEST_CONFIG: ImageConfig = { Cmd: ['/bin/sleep', '1000000'], Env: ['PATH=/bin'] };

const DOCKERFILE = fileURLToPath(new URL('../../../../Dockerfile', import.meta.url));

/** The configuration in the last stage of the Dockerfile. */
export const OWN_CONFIG: ImageConfig = ownConfig(readFileSync(DOCKERFILE, 'utf8'));

function ownConfig(dockerfile: string): ImageConfig {
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const instruction = (name: string): string | undefined => new RegExp(`^${name} (.+)$`, 'm').exec(lastStage)?.[1];
  const list = (name: string): string[] => JSON.parse(instruction(name) ?? '[]') as string[];
  return {
    Entrypoint: list('ENTRYPOINT'),
    Cmd: list('CMD'),
    Env: ['PATH=/usr/bin:/bin', ...[...lastStage.matchAll(/^ENV (\S+)$/gm)].map(([, variable = '']) => variable)],
    User: instruction('USER') ?? '',
  };
}

/** Packs a layer into an image that `ctr images import` takes (the format of `docker save`); returns the tar file. */
export function packImage(directory: string, layer: string, reference = TEST_IMAGE, config = TEST_CONFIG): string {
  const diffId = createHash('sha256').update(readFileSync(layer)).digest('hex');
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const description = { architecture, os: 'linux', config, rootfs: { type: 'layers', diff_ids: [`sha256:${diffId}`] } };
  writeFileSync(join(directory, 'config.json'), JSON.stringify(description));
  writeFileSync(
    join(directory, 'manifest.json'),
    JSON.stringify([{ Config: 'config.json', RepoTags: [reference], Layers: ['layer.tar'] }]),
  );
  const image = join(directory, 'image.tar');
  execFileSync('tar', ['-C', directory, '-cf', image, 'manifest.json', 'config.json', 'layer.tar']);
  return image;
}
