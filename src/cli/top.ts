import { Command } from 'commander';
import type { NodeSnapshot } from '../agent/display/view.js';
import { displaySocketOption, withNode, type NodeClient } from './display-client.js';
import { secondsBetween } from './flag-values.js';
import { outputOption, printItem, type Output } from './output.js';
import { stopSignal } from './stop-signal.js';
import { topFrame, type SortKey } from './top-frame.js';

interface Options {
  readonly displaySocket: string;
  readonly delay: number;
  readonly once?: true;
  readonly output: Output;
}

const MAX_TRAIL = 60;
const SORT_KEYS: Readonly<Record<string, SortKey>> = { c: 'cores', m: 'memory', t: 'throttled' };

const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l';
const LEAVE_SCREEN = '\u001b[?25h\u001b[?1049l';

/** `gpu-manager top`: shows GPUs and containers of this node, refreshed periodically. */
export function topCommand(): Command {
  return new Command('top')
    .description('watch GPUs and containers of this node; keys: q quit, c m t sort by cores, memory, throttling')
    .option('-d, --delay <seconds>', 'time between two samples', secondsBetween(0.2, 3_600), 1)
    .option('--once', 'print one sample and exit; the default if the output is not a terminal')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((options: Options) =>
      withNode(options.displaySocket, async (node) => {
        if (options.output === 'json' || options.output === 'yaml') {
          await printItem(options.output, { document: () => node.snapshot(), table: () => '' });
        } else if (options.once === true || !process.stdout.isTTY)
          process.stdout.write(`${frameOf(await node.snapshot(), new Trails(), 'cores', null, Infinity).join('\n')}\n`);
        else await watch(node, options.delay * 1000);
      }),
    );
}

/** Use of each GPU in the last samples. */
class Trails {
  readonly byUuid = new Map<string, number[]>();

  add({ cards: gpus }: NodeSnapshot): void {
    for (const { uuid, usedPercent } of gpus) {
      const trail = this.byUuid.get(uuid) ?? [];
      trail.push(usedPercent ?? 0);
      this.byUuid.set(uuid, trail.slice(-MAX_TRAIL));
    }
  }
}

function frameOf(
  snapshot: NodeSnapshot,
  trails: Trails,
  sort: SortKey,
  before: NodeSnapshot | null,
  rows: number,
): string[] {
  const color = process.stdout.isTTY && (process.env.NO_COLOR ?? '') === '';
  return topFrame(snapshot, {
    columns: process.stdout.columns ?? 120,
    rows,
    sort,
    color,
    before,
    trails: trails.byUuid,
  });
}

/** Redraws until the user presses q or a signal arrives; then restores the terminal. */
async function watch(node: NodeClient, delayMs: number): Promise<void> {
  const { stdin, stdout } = process;
  const trails = new Trails();
  let sort: SortKey = 'cores';
  let now: NodeSnapshot | null = null;
  let before: NodeSnapshot | null = null;
  let wake = (): void => undefined;
  let ended = false;
  const end = (): void => {
    ended = true;
    wake();
  };
  const draw = (): void => {
    if (now === null) return;
    const lines = frameOf(now, trails, sort, before, stdout.rows);
    stdout.write(`\u001b[H${lines.map((text) => `${text}\u001b[K`).join('\r\n')}\u001b[J`);
  };
  const hear = (key: Buffer): void => {
    const text = key.toString('latin1');
    if (text === 'q' || text === '\u0003') end();
    else if (SORT_KEYS[text] !== undefined) {
      sort = SORT_KEYS[text];
      draw();
    }
  };
  void stopSignal().then(end);
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on('data', hear);
  stdout.on('resize', draw);
  stdout.write(ENTER_SCREEN);
  try {
    while (!ended) {
      before = now;
      now = await node.snapshot();
      trails.add(now);
      draw();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, delayMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    stdout.write(LEAVE_SCREEN);
    stdout.off('resize', draw);
    stdin.off('data', hear);
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.pause();
  }
}
