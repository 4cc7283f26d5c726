import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/** Values that distinguish a process from a later one with the same pid. */
export interface ProcessStat {
  /** Field 22 of proc(5)'s `stat`: clock ticks after boot. */
  readonly startTicks: number;
  /** At most 15 characters, chosen by the process. */
  readonly name: string;
  /** Whether it has ended and only waits for its parent (a zombie). */
  readonly ended: boolean;
  /** Whether it is ending: its descriptors may be closed already, while a driver still lists it. */
  readonly exiting: boolean;
}

/** Values of `/proc/<pid>/status`. */
export interface ProcessStatus {
  /** Its pids in every pid namespace that it belongs to, ours first and the innermost last. */
  readonly namespacePids: readonly number[];
  /** Its effective user, in our user namespace; null if it is not listed. */
  readonly uid: number | null;
}

/** Reads `/proc/<pid>/status`, which never blocks; null if there is no such process. */
export function processStatus(pid: number, proc = '/proc'): ProcessStatus | null {
  let text: string;
  try {
    text = readFileSync(`${proc}/${pid}/status`, 'latin1');
  } catch {
    return null;
  }
  const numbers = (field: string): number[] => {
    const line = new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? '';
    return line
      .split(/\s+/)
      .filter((word) => word !== '')
      .map(Number);
  };
  // Real, effective, saved and file system user.
  return { namespacePids: numbers('NSpid'), uid: numbers('Uid')[1] ?? null };
}

/**
 * Its pids in every pid namespace that it belongs to, ours first and the innermost last; empty if there is no such
 * process.
 */
export function namespacePids(pid: number, proc = '/proc'): readonly number[] {
  return processStatus(pid, proc)?.namespacePids ?? [];
}

/** PF_EXITING of the kernel's `flags` of a thread. */
const EXITING = 0x4;

/** Reads `/proc/<pid>/stat`, which never blocks; null if there is no such process. */
export function processStat(pid: number, proc = '/proc'): ProcessStat | null {
  const text = readStat(`${proc}/${pid}/stat`);
  if (text === null) return null;
  // The name is in parentheses and may contain parentheses, so the last one ends it. State is field 3.
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [state = '', threads, startTicks] = [fields[0], Number(fields[20 - 3]), Number(fields[22 - 3])];
  // The first thread of a process may have ended while others run.
  const ended = 'ZX'.includes(state) && threads <= 1;
  const exiting = ended || (Number(fields[9 - 3]) & EXITING) !== 0;
  return end < 0 || !Number.isSafeInteger(startTicks)
    ? null
    : { startTicks, name: text.slice(text.indexOf('(') + 1, end), ended, exiting };
}

/** More bytes than 52 numbers and a name take. */
const room = Buffer.alloc(2_048);

/** Node's own function takes twice as long for files without a size, with a buffer of 64 KiB for each. */
function readStat(path: string): string | null {
  let fd: number | null = null;
  try {
    fd = openSync(path, 'r');
    return room.toString('latin1', 0, readSync(fd, room, 0, room.length, 0));
  } catch {
    return null;
  } finally {
    if (fd !== null) closeSync(fd);
  }
}
