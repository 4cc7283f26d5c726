import { Command } from 'commander';
import { displaySocketOption, withNode } from './display-client.js';
import { secondsBetween } from './flag-values.js';
import { isDocument, outputOption, printItem, type Output } from './output.js';

interface Options {
  readonly displaySocket: string;
  readonly delay: number;
  readonly once?: true;
  readonly mouse: boolean;
  readonly output: Output;
}

/** Columns of one sample where the output is no terminal. */
const PRINTED_COLUMNS = 120;

/** `gpu-manager top`: shows GPUs, containers and processes of this node, refreshed periodically. */
export function topCommand(): Command {
  return new Command('top')
    .description('watch GPUs, containers and processes of this node; ? shows the keys, q quits')
    .option('-d, --delay <seconds>', 'time between two samples', secondsBetween(0.2, 3_600), 1)
    .option('--once', 'print one sample and exit; the default if the output is not a terminal')
    .option('--no-mouse', 'leave the mouse to the terminal')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action(({ displaySocket, delay, once, mouse, output }: Options) =>
      withNode(displaySocket, async (node) => {
        if (isDocument(output)) {
          await printItem(output, { document: () => node.snapshot(), table: () => '' });
          return;
        }
        const color = usesColor();
        const { nodeSource, sampleOf } = await import('./top/node-source.js');
        if (once === true || !isScreen()) {
          const { printed } = await import('./top/printed.js');
          process.stdout.write(
            printed(sampleOf(await node.snapshot()), process.stdout.columns ?? PRINTED_COLUMNS, color),
          );
        } else {
          const { watch } = await import('./top/watch.js');
          await watch(nodeSource(displaySocket, node), { delayMs: delay * 1000, mouse, color });
        }
      }),
    );
}

/** Whether the output is a terminal that can show more than lines. */
export function isScreen(): boolean {
  return process.stdout.isTTY && process.env.TERM !== 'dumb';
}

/** https://no-color.org */
export function usesColor(): boolean {
  return process.stdout.isTTY && (process.env.NO_COLOR ?? '') === '';
}
