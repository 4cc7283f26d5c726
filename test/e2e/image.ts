import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildRootFileSystem,
  OWN_CONFIG,
  packImage,
  packLayer,
  type ImageConfig,
  type ImageFile,
} from '../agent/runtimes/test-image.js';

const ROOTFS = fileURLToPath(new URL('../../../scripts/image-rootfs', import.meta.url));

/** Creates an image of busybox and the given files, under that name, in the k8s.io namespace of containerd. */
export function importImage(containerdSocket: string, reference: string, files: readonly ImageFile[] = []): void {
  inWork((work) => importRoot(containerdSocket, reference, work, buildRootFileSystem(work, files)));
}

/** Creates the image of this project, with the given name, in the k8s.io namespace of containerd. */
export function importOwnImage(containerdSocket: string, reference: string): void {
  inWork((work) => {
    const root = join(work, 'rootfs');
    execFileSync(ROOTFS, [root], { stdio: 'ignore' });
    importRoot(containerdSocket, reference, work, root, OWN_CONFIG);
  });
}

function importRoot(
  containerdSocket: string,
  reference: string,
  work: string,
  root: string,
  config?: ImageConfig,
): void {
  const image = packImage(work, packLayer(work, root), reference, config);
  execFileSync('ctr', ['-a', containerdSocket, '-n', 'k8s.io', 'images', 'import', image], { stdio: 'ignore' });
}

function inWork(action: (work: string) => void): void {
  const work = mkdtempSync(join(tmpdir(), 'image-'));
  try {
    action(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
