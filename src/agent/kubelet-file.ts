import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * A file of the kubelet's root, found by one of the directories in it. A container may see these directories alone; the
 * host's file system is mounted as well.
 */
export function kubeletFile(directoryInRoot: string, hostRoot: string, name: string): string {
  const path = join(dirname(directoryInRoot), name);
  const onHost = join(hostRoot, path);
  return existsSync(onHost) ? onHost : path;
}
