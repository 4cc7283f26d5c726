import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildRootFileSystem, packImage, packLayer, type ImageFile } from '../runtime/test-image.js';

/** Makes an image of busybox and the given files, under that name, in containerd's k8s.io namespace. */
export function importImage(containerdSocket: string, reference: string, files: readonly ImageFile[] = []): void {
  const work = mkdtempSync(join(tmpdir(), 'image-'));
  try {
    const layer = packLayer(work, buildRootFileSystem(work, files));
    const image = packImage(work, layer, reference);
    execFileSync('ctr', ['-a', containerdSocket, '-n', 'k8s.io', 'images', 'import', image], { stdio: 'ignore' });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
