import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Path of a file in the kubelet's root, derived from one of the root's directories. That of device plugins is none: it
 * is the same for every root. If a container has only these directories mounted, the path is below the host's file
 * system.
 */
export function kubeletFile(directoryInRoot: string, hostRoot: string, name: string): string {
  const path = join(dirname(directoryInRoot), name);
  const onHost = join(hostRoot, path);
  return existsSync(onHost) ? onHost : path;
}
