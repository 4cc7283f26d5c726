import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import tap from 'tap';

/**
 * Shares the mounts of the whole file system of the node, as systemd does: the container runtime sees the mounts of the
 * agent.
 */
export function shareMounts(directory: string): void {
  mkdirSync(directory, { recursive: true });
  execFileSync('mount', ['--bind', directory, directory]);
  execFileSync('mount', ['--make-rshared', directory]);
  tap.teardown(() => execFileSync('umount', ['--recursive', '--lazy', directory]));
}
