import { Command } from 'commander';
import { displaySocketOption, withNode } from './display-client.js';
import { outputOption, print, type Output } from './output.js';

interface Options {
  readonly displaySocket: string;
  readonly extended?: true;
  readonly output: Output;
}

/** `gpu-manager graph`: the topology of the node's GPUs and their free capacity. */
export function graphCommand(): Command {
  return new Command('graph')
    .description("print the topology of this node's GPUs, and their free capacity")
    .option('--extended', 'include NVLinks, models, and whether each GPU may be chosen')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action((options: Options) =>
      withNode(options.displaySocket, async (node) => {
        const graph = await node.graph(options.extended === true || options.output === 'wide');
        const { cards, tree, nvlinks } = await node.snapshot();
        await print(options.output, { document: () => ({ graph, cards, tree, nvlinks }), table: () => graph });
      }),
    );
}
