import { Command } from 'commander';
import { DISPLAY_SOCKET_OPTION, outputOption, withNode, type Output } from './display-client.js';

interface Options {
  readonly displaySocket: string;
  readonly extended?: true;
  readonly output: Output;
}

/** `gpu-manager graph`: the topology of the node's GPUs and what is free of them. */
export function graphCommand(): Command {
  return new Command('graph')
    .description("print the topology of this node's GPUs, and what of them is free")
    .option('--extended', 'include NVLinks, models, and whether each GPU may be chosen')
    .addOption(outputOption())
    .option(...DISPLAY_SOCKET_OPTION)
    .action((options: Options) =>
      withNode(options.displaySocket, async (node) => {
        if (options.output === 'text') {
          process.stdout.write(await node.graph(options.extended === true));
          return;
        }
        const { cards: gpus, tree, nvlinks } = await node.snapshot();
        process.stdout.write(
          `${JSON.stringify({ graph: await node.graph(options.extended === true), cards: gpus, tree, nvlinks }, null, 2)}\n`,
        );
      }),
    );
}
