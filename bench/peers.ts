import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BenchOptions } from './report.js';
import { cost } from './peers/cost.js';
import { PEER_FILES } from './peers/library.js';
import { memory } from './peers/memory.js';
import { race } from './peers/race.js';
import { neighbours, share } from './peers/share.js';
import { start } from './peers/start.js';

const PARTS = { cost, share, neighbours, memory, race, start } as const;

/**
 * The control library beside those of other projects, each configured as its own documents say, on the same simulated
 * GPUs: what calls cost, which share containers get, what gets past a memory limit, how long programs take to start.
 * One program runs behind all of them. The libraries are those that somebody built by each project's own documents
 * (docs/reference/comparison.md says which). Needs root, for mount namespaces.
 *
 *     npm run bench -- peers --peers DIR [--quick] [--report DIR] [PART...]
 *
 * Parts: cost, share, neighbours, memory, race, start
 */
export async function run(options: BenchOptions): Promise<void> {
  const { args, note } = options;
  const at = args.indexOf('--peers');
  const directory = at < 0 ? undefined : args[at + 1];
  if (directory === undefined) {
    note('skipped: --peers names no folder with the libraries of other projects (docs/reference/comparison.md)');
    return;
  }
  const peers = resolve(directory);
  const missing = PEER_FILES.filter((file) => !existsSync(join(peers, file)));
  if (missing.length > 0)
    throw new Error(`${peers} has no ${missing.join(', ')}: docs/reference/comparison.md says what it should hold`);
  if (process.getuid?.() !== 0) {
    note('skipped: only root can make mount namespaces');
    return;
  }
  const wanted = args.filter((argument, index) => !argument.startsWith('-') && index !== at + 1);
  const unknown = wanted.find((name) => !(name in PARTS));
  if (unknown !== undefined) throw new Error(`no part "${unknown}": there are ${Object.keys(PARTS).join(', ')}`);
  note(readFileSync(join(peers, 'versions'), 'utf8').trim());
  for (const [name, part] of Object.entries(PARTS))
    if (wanted.length === 0 || wanted.includes(name)) {
      options.section(name);
      await part(peers, args.includes('--quick'), options);
    }
}
