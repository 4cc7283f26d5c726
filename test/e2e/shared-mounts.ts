import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import tap, { type Test } from 'tap';

/**
 * Shares the mounts of the whole file system of the node, as systemd does: the container runtime sees the mounts of the
 * agent. They are unmounted after `until`, by default after all tests of the file.
 */
export function shareMounts(directory: string, until: Pick<Test, 'teardown'> = tap): void {
  mkdirSync(directory, { recursive: true });
  execFileSync('mount', ['--bind', directory, directory]);
  execFileSync('mount', ['--make-rshared', directory]);
  until.teardown(() => execFileSync('umount', ['--recursive', '--lazy', directory]));
}
