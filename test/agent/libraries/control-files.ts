import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildElf } from './elf-builder.js';

/** SONAME of each control library, and the name of the driver library behind it. */
const CONTROLS = [
  ['libcuda-control.so', 'libcuda.so.1', 'libcuda-origin.so.1'],
  ['libnvml-control.so', 'libnvidia-ml.so.1', 'libnvidia-ml-origin.so.1'],
] as const;

/** Writes files shaped like the native libraries of this project; returns the paths of the control libraries. */
export function buildControlFiles(directory: string, architecture: 'x86-64' | 'aarch64' = 'x86-64'): string[] {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'gpu-client'), 'client', { mode: 0o755 });
  return CONTROLS.map(([file, soname, origin]) => {
    writeFileSync(join(directory, file), buildElf({ architecture, soname, needed: [origin, 'libc.so.6'] }), {
      mode: 0o755,
    });
    return join(directory, file);
  });
}
