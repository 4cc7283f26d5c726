import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../../../../test/agent/gpus/nvidia/odd-nvml.c', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'odd-nvml-'));
const orders = join(folder, 'orders');

process.env['ODD_NVML'] = orders;
process.on('exit', () => rmSync(folder, { recursive: true }));

function build(name: string, flags: readonly string[]): string {
  const library = join(folder, name);
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', ...flags, '-o', library, source]);
  return library;
}

/** Reason why the library cannot be built here; false where it can. */
export const noCompiler: string | false = (() => {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'gcc is not installed';
  }
})();

/** The odd library with the names of current drivers, and one with the first version of each function only. */
export const oddLibrary = noCompiler === false ? build('libodd.so', []) : '';
export const oldLibrary = noCompiler === false ? build('libold.so', ['-DOLD']) : '';

/** Sets the behaviour of the library from now on: the lines that odd-nvml.c describes. */
export function command(...lines: readonly string[]): void {
  writeFileSync(orders, lines.map((line) => `${line}\n`).join(''));
}

command();
