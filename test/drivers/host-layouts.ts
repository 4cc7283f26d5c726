import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Branch } from './packages.js';

/** How an installation of the driver lays out its files below the root of a host. */
export interface HostLayout {
  readonly name: string;
  /** Fills an empty folder; returns the folder that is the host's root. */
  readonly build: (folder: string, branch: Branch) => string;
}

const MULTIARCH = 'usr/lib/x86_64-linux-gnu';

/** Debian: libraries in a folder of their own, reached over absolute links through /etc/alternatives. */
const debian: HostLayout = {
  name: 'Debian',
  build(folder, branch) {
    copyLibraries(branch, join(folder, MULTIARCH, 'nvidia/current'));
    for (const file of branch.libraryFiles) copy(file, join(folder, MULTIARCH, basename(file)));
    for (const name of linkedNames(branch)) {
      const alternative = `/etc/alternatives/nvidia--${name}-x86_64-linux-gnu`;
      link(`/${MULTIARCH}/nvidia/current/${name}`, join(folder, alternative));
      link(alternative, join(folder, MULTIARCH, name));
    }
    if (branch.nvidiaSmi !== null) {
      copy(branch.nvidiaSmi, join(folder, 'usr/lib/nvidia/current/nvidia-smi'));
      link('/usr/lib/nvidia/current/nvidia-smi', join(folder, 'etc/alternatives/nvidia--nvidia-smi'));
      link('/etc/alternatives/nvidia--nvidia-smi', join(folder, 'usr/bin/nvidia-smi'));
    }
    return withCache(folder);
  },
};

/** A layout that has the libraries directly in a directory of the dynamic linker. */
const flat = (name: string, directory: string, root = ''): HostLayout => ({
  name,
  build(folder, branch) {
    const host = join(folder, root);
    copyLibraries(branch, join(host, directory));
    for (const file of branch.libraryFiles) copy(file, join(host, directory, basename(file)));
    if (branch.nvidiaSmi !== null) copy(branch.nvidiaSmi, join(host, 'usr/bin/nvidia-smi'));
    return withCache(host);
  },
});

export const HOST_LAYOUTS: readonly HostLayout[] = [
  debian,
  flat('Ubuntu', MULTIARCH),
  flat('the runfile on RHEL', 'usr/lib64'),
  flat('the driver container', MULTIARCH, 'run/nvidia/driver'),
];

/** The names of links in the branch's folder: SONAMEs and names without a version. */
function linkedNames({ libraries }: Branch): string[] {
  return readdirSync(libraries).filter((name) => lstatSync(join(libraries, name)).isSymbolicLink());
}

function copyLibraries({ libraries }: Branch, directory: string): void {
  for (const name of readdirSync(libraries)) {
    const from = join(libraries, name);
    if (lstatSync(from).isSymbolicLink()) link(readlinkSync(from), join(directory, name));
    else copy(from, join(directory, name));
  }
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

/** Writes the host's ld.so.cache where this user may; hosts without one are searched by directory. */
function withCache(host: string): string {
  mkdirSync(join(host, 'etc'), { recursive: true });
  writeFileSync(join(host, 'etc/ld.so.conf'), `/${MULTIARCH}\n/usr/lib64\n`);
  const ldconfig = ['/sbin/ldconfig', '/usr/sbin/ldconfig'].find((path) => existsSync(path));
  if (ldconfig !== undefined) spawnSync(ldconfig, ['-X', '-r', host], { stdio: 'ignore' });
  return host;
}

/** File names of the driver's own libraries below a host's root, for comparison with a mirror. */
export function driverFiles({ libraries, libraryFiles }: Branch): string[] {
  const files = readdirSync(libraries).filter((name) => lstatSync(join(libraries, name)).isFile());
  return [...files, ...libraryFiles.map((path) => basename(path))];
}
