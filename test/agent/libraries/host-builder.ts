import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CacheEntry } from '../../../src/agent/libraries/ld-so-cache.js';
import { buildLdSoCache } from './cache-builder.js';
import { buildElf, type ElfDescription } from './elf-builder.js';

type HostArchitecture = 'x86-64' | 'i386' | 'aarch64';

export interface HostDescription {
  /** Version of the driver; its major number decides which libraries it has. */
  readonly driver: string;
  readonly architecture: 'x86-64' | 'aarch64';
  /** Whether the 32 bit libraries are installed too; only drivers for x86-64 have them. */
  readonly with32Bit?: boolean;
  /** Text in every library that makes one installation differ from the next. */
  readonly content?: string;
}

export const LIBRARY_DIRECTORY: Readonly<Record<HostArchitecture, string>> = {
  'x86-64': 'usr/lib/x86_64-linux-gnu',
  aarch64: 'usr/lib/aarch64-linux-gnu',
  i386: 'usr/lib/i386-linux-gnu',
};

const BINARIES = [
  'nvidia-smi',
  'nvidia-debugdump',
  'nvidia-persistenced',
  'nvidia-cuda-mps-control',
  'nvidia-cuda-mps-server',
];

interface Library {
  readonly file: string;
  readonly elf: ElfDescription;
}

/**
 * The files that the installer of the driver puts into a library directory, as far as the shipped volume.conf lists
 * them.
 */
export function driverLibraries(driver: string): Library[] {
  const major = Number(driver.split('.')[0]);
  const glvnd = ['libGLdispatch.so.0'];
  const versioned = (stem: string, soname: string | null, needed: readonly string[] = []): Library => ({
    file: `${stem}.${driver}`,
    elf: { soname: soname ?? `${stem}.${driver}`, needed: [...needed, 'libc.so.6'] },
  });
  const gpucomp = major >= 535 ? [`libnvidia-gpucomp.so.${driver}`] : [];
  return [
    versioned('libcuda.so', 'libcuda.so.1', ['libm.so.6']),
    versioned('libnvidia-ml.so', 'libnvidia-ml.so.1'),
    versioned('libnvidia-ptxjitcompiler.so', 'libnvidia-ptxjitcompiler.so.1'),
    versioned('libnvidia-opencl.so', 'libnvidia-opencl.so.1'),
    versioned('libnvidia-allocator.so', 'libnvidia-allocator.so.1'),
    versioned('libnvidia-encode.so', 'libnvidia-encode.so.1', ['libnvcuvid.so.1']),
    versioned('libnvcuvid.so', 'libnvcuvid.so.1'),
    versioned('libnvidia-glcore.so', null, [`libnvidia-tls.so.${driver}`, ...gpucomp]),
    {
      ...versioned('libnvidia-tls.so', null),
      elf: { soname: `libnvidia-tls.so.${driver}`, needed: ['libc.so.6'], minimumLinux: [2, 3, 99] },
    },
    versioned('libGLX_nvidia.so', 'libGLX_nvidia.so.0', [`libnvidia-glcore.so.${driver}`]),
    { file: 'libGL.so.1.7.0', elf: { soname: 'libGL.so.1', needed: glvnd } },
    { file: 'libGLdispatch.so.0.0.0', elf: { soname: 'libGLdispatch.so.0', needed: ['libc.so.6'] } },
    ...(major < 495
      ? [
          versioned('libnvidia-compiler.so', null),
          versioned('libnvidia-cbl.so', null),
          versioned('libnvidia-ifr.so', 'libnvidia-ifr.so.1'),
        ]
      : []),
    ...(major >= 525
      ? [versioned('libnvidia-nvvm.so', 'libnvidia-nvvm.so.4'), versioned('libcudadebugger.so', 'libcudadebugger.so.1')]
      : []),
    ...(major >= 535 ? [versioned('libnvidia-gpucomp.so', null)] : []),
    ...(major >= 550 ? [versioned('libnvidia-sandboxutils.so', 'libnvidia-sandboxutils.so.1')] : []),
    // The libraries of Mesa beside those of the driver.
    { file: 'libEGL.so.1.0.0', elf: { soname: 'libEGL.so.1', needed: ['libgbm.so.1'] } },
    // Not a part of any driver.
    { file: 'libz.so.1.2.13', elf: { soname: 'libz.so.1', needed: ['libc.so.6'] } },
  ];
}

/** Makes a root file system with a driver in it, and the ld.so.cache that goes with it. */
export function buildHost(root: string, host: HostDescription): void {
  const architectures: HostArchitecture[] = host.with32Bit === true ? [host.architecture, 'i386'] : [host.architecture];
  const entries: CacheEntry[] = [];
  for (const architecture of architectures) {
    for (const library of driverLibraries(host.driver)) {
      const directory = LIBRARY_DIRECTORY[architecture];
      const soname = library.elf.soname ?? library.file;
      install(
        join(root, directory, library.file),
        buildElf({ ...library.elf, architecture, content: `${host.driver} ${host.content ?? ''}` }),
      );
      if (soname !== library.file) symlinkSync(library.file, join(root, directory, soname));
      entries.push({ name: soname, path: `/${directory}/${soname}`, architecture, hardware: null });
    }
  }
  // A script among the programs: some distributions ship programs of the driver that are not ELF files.
  for (const binary of BINARIES)
    install(
      join(root, 'usr/bin', binary),
      binary === 'nvidia-smi' ? buildElf({ needed: ['libc.so.6'] }) : Buffer.from('#!/bin/sh\n'),
    );
  symlinkSync('usr/bin', join(root, 'bin'));
  symlinkSync('usr/lib', join(root, 'lib'));
  install(join(root, 'etc/ld.so.cache'), buildLdSoCache(entries, { oldHeader: host.driver.startsWith('470') }));
  const directories = architectures.map((architecture) => `/${LIBRARY_DIRECTORY[architecture]}\n`).join('');
  install(join(root, 'etc/ld.so.conf'), Buffer.from(directories));
}

function install(path: string, content: Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, 0o755);
}
