import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageFile } from '../../src/host/package-files.js';
import { KUBECTL_GPU, MAIN } from '../harness/programs.js';
import { timeLimit } from '../harness/time-factor.js';
import { NODE, type TestCluster } from './cluster.js';

/** The shell commands of a guide below each heading of the second level, in order. */
export function commandsOf(file: string): ReadonlyMap<string, readonly string[]> {
  const sections = readFileSync(packageFile(`docs/guides/${file}`), 'utf8')
    .split(/^## /m)
    .slice(1);
  return new Map(
    sections.map((text) => [
      text.slice(0, text.indexOf('\n')),
      [...text.matchAll(/^( *)```sh\n([^]*?)^ *```/gm)].map(([, indent = '', block = '']) =>
        block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      ),
    ]),
  );
}

/** A shell as a reader of a guide has it: our programs, kubectl and helm with the configuration of the cluster. */
export class GuideReader {
  readonly directory = mkdtempSync(join(tmpdir(), 'guide-'));
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
    mkdirSync(join(this.directory, 'bin'));
    for (const [name, program] of [
      ['gpu-manager', MAIN],
      ['kubectl-gpu', KUBECTL_GPU],
    ] as const) {
      const file = join(this.directory, 'bin', name);
      writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
      chmodSync(file, 0o755);
    }
    writeFileSync(join(this.directory, 'daemonset.yaml'), readFileSync(packageFile('daemonset.yaml')));
  }

  /** Runs commands with what the guide writes in capitals replaced: the node, and what `words` names. */
  async run(commands: string, words: Readonly<Record<string, string>> = {}): Promise<string> {
    const text = Object.entries({ NODE, ...words }).reduce(
      (written, [word, value]) => written.replaceAll(new RegExp(`\\b${word}\\b`, 'g'), value),
      commands,
    );
    const { stdout } = await promisify(execFile)('bash', ['-euxo', 'pipefail', '-c', text], {
      cwd: this.directory,
      timeout: timeLimit(300_000),
      env: {
        ...process.env,
        PATH: `${join(this.directory, 'bin')}:${process.env['PATH']}`,
        KUBECONFIG: this.#cluster.kubeconfig,
      },
    });
    return stdout;
  }

  close(): void {
    rmSync(this.directory, { recursive: true });
  }
}
