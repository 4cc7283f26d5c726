import koffi from 'koffi';
import { readFileSync, statSync } from 'node:fs';

// mount(2), umount2(2): numbers of Linux, the same on every architecture.
const MS_NOSUID = 2;
const MS_NODEV = 4;
const MS_NOEXEC = 8;
const MS_RDONLY = 1;
const MS_REMOUNT = 32;
const MS_BIND = 4_096;
const MNT_DETACH = 2;

interface Calls {
  mount(source: string, target: string, type: string | null, flags: number, data: string | null): number;
  umount(target: string, flags: number): number;
}

let bound: Calls | null = null;

function calls(): Calls {
  if (bound === null) {
    const library = koffi.load('libc.so.6');
    bound = {
      mount: library.func(
        'int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)',
      ) as Calls['mount'],
      umount: library.func('int umount2(const char *target, int flags)') as Calls['umount'],
    };
  }
  return bound;
}

function refuse(call: string, target: string): never {
  const errno = koffi.errno();
  const code = Object.entries(koffi.os.errno).find(([, number]) => number === errno)?.[0] ?? String(errno);
  throw Object.assign(new Error(`${call} ${target}: ${code}`), { code });
}

/**
 * Mounts an empty file system in memory with room for `bytes` bytes in `files` files. Throws if mounting is not
 * permitted.
 */
export function mountTmpfs(target: string, bytes: number, files: number): void {
  const options = `size=${bytes},nr_inodes=${files + 1},mode=0700`;
  if (calls().mount('tmpfs', target, 'tmpfs', MS_NOSUID | MS_NODEV | MS_NOEXEC, options) !== 0)
    refuse('mount tmpfs on', target);
}

/** Bind-mounts `source` on `target`, which must exist and be of the same kind. */
export function bindMount(source: string, target: string): void {
  if (calls().mount(source, target, null, MS_BIND, null) !== 0) refuse(`mount ${source} on`, target);
}

/** Makes a bind mount read-only; the files that it shows may still change. */
export function remountReadOnly(target: string): void {
  const flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (calls().mount('none', target, null, flags, null) !== 0) refuse('make read-only', target);
}

/** Unmounts every layer on `target`; open users keep it. Does nothing without a mount. */
export function unmount(target: string): void {
  for (;;) {
    if (calls().umount(target, MNT_DETACH) === 0) continue;
    const errno = koffi.errno();
    if (errno === koffi.os.errno.EINVAL || errno === koffi.os.errno.ENOENT) return;
    refuse('unmount', target);
  }
}

/**
 * Whether the first process of the machine sees the file system of `path`: runtimes can mount only what that process
 * sees.
 */
export function isSeenByHost(path: string): boolean {
  const { dev } = statSync(path, { bigint: true });
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
  try {
    return readFileSync('/proc/1/mountinfo', 'utf8').includes(` ${major}:${minor} `);
  } catch {
    return false;
  }
}
