import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { scratchDirectory } from '../../scratch.js';

type Teardown = Parameters<typeof scratchDirectory>[0];

/** Control groups of a test, in which it makes containers of pods: the kernel's, or a double of plain folders. */
export interface TestGroups {
  /** Root of all groups, and the /proc that belongs to them. */
  readonly root: string;
  readonly processes: string;
  /** Makes the group of a pod, as the kubelet does before it has a container made; returns its folder. */
  pod(podUid: string): string;
  /** Makes the group of a container, and those above it; returns its folder and the container's id. */
  container(podUid: string): { readonly path: string; readonly id: string };
  /** Makes a group below another one, as a container can; returns its folder. */
  below(path: string): string;
  /** Puts a process into a group, out of its former one. */
  enter(path: string, pid: number): void;
  /** Removes a group without processes and those below it. */
  remove(path: string): void;
}

const newId = (): string => randomBytes(32).toString('hex');

/** Plain folders with the files `cgroup.controllers` and `cgroup.procs`, and a /proc of the processes that entered. */
export async function doubleGroups(t: Teardown): Promise<TestGroups> {
  const directory = await scratchDirectory(t);
  const [root, processes] = [join(directory, 'cgroup'), join(directory, 'proc')];
  const make = (path: string): void => {
    mkdirSync(path);
    writeFileSync(join(path, 'cgroup.procs'), '');
  };
  const places = new Map<number, string>();
  mkdirSync(processes);
  make(root);
  writeFileSync(join(root, 'cgroup.controllers'), '');
  make(join(root, 'kubepods'));
  const pod = (podUid: string): string => {
    const path = join(root, 'kubepods', `pod${podUid}`);
    if (!existsSync(path)) make(path);
    return path;
  };
  return {
    root,
    processes,
    pod,
    container(podUid) {
      const id = newId();
      const path = join(pod(podUid), id);
      make(path);
      return { path, id };
    },
    below(path) {
      make(join(path, 'sub'));
      return join(path, 'sub');
    },
    enter(path, pid) {
      const before = places.get(pid);
      if (before !== undefined && existsSync(before)) {
        const procs = join(before, 'cgroup.procs');
        writeFileSync(procs, readFileSync(procs, 'utf8').replace(`${pid}\n`, ''));
      }
      places.set(pid, path);
      writeFileSync(join(path, 'cgroup.procs'), `${pid}\n`, { flag: 'a' });
      mkdirSync(join(processes, String(pid)), { recursive: true });
      writeFileSync(join(processes, String(pid), 'cgroup'), `0::${path.slice(root.length)}\n`);
    },
    remove: (path) => rmSync(path, { recursive: true }),
  };
}

const CGROUP2_MAGIC = 0x6367_7270;

/** Where the kernel's control groups of version 2 are mounted; null: nowhere. */
function kernelRoot(): string | null {
  const roots = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .flatMap((line) => (line.split(' ')[2] === 'cgroup2' ? (line.split(' ')[1] ?? '') : []));
  return roots.find((root) => statfsSync(root).type === CGROUP2_MAGIC) ?? null;
}

/** Reason why a test cannot make groups in the kernel; false where it can. */
export function kernelGroupsSkipReason(): string | false {
  const root = kernelRoot();
  if (root === null) return 'no control groups of version 2 are mounted';
  if (process.getuid?.() !== 0) return 'only root can make control groups';
  const path = join(root, `gm-probe-${process.pid}`);
  try {
    mkdirSync(path);
    rmdirSync(path);
    return false;
  } catch (error) {
    return `no control group can be made below ${root}: ${(error as Error).message}`;
  }
}

/** Groups of the kernel. Their processes have to end before the test does. */
export function kernelGroups(t: Teardown): TestGroups {
  const root = kernelRoot() ?? '';
  const own = join(root, `gm-test-${process.pid}-${randomBytes(4).toString('hex')}`);
  const remove = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(path, entry.name));
    rmdirSync(path);
  };
  t.teardown(async () => {
    if (existsSync(own)) remove(own);
  });
  return {
    root,
    processes: '/proc',
    pod(podUid) {
      const path = join(own, 'kubepods', `pod${podUid}`);
      mkdirSync(path, { recursive: true });
      return path;
    },
    container(podUid) {
      const id = newId();
      const path = join(own, 'kubepods', `pod${podUid}`, id);
      mkdirSync(path, { recursive: true });
      return { path, id };
    },
    below(path) {
      mkdirSync(join(path, 'sub'));
      return join(path, 'sub');
    },
    enter: (path, pid) => writeFileSync(join(path, 'cgroup.procs'), String(pid)),
    remove,
  };
}
