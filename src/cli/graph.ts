import { Command } from 'commander';
import { callUnary } from '../wire/unary.js';
import { displayClient, DISPLAY_SOCKET_OPTION } from './display-client.js';

/** `gpu-manager graph`: the topology of the node's GPUs and what is free of them. */
export function graphCommand(): Command {
  return new Command('graph')
    .description("print the topology of this node's GPUs")
    .option(...DISPLAY_SOCKET_OPTION)
    .action(async (options: { displaySocket: string }) => {
      const client = displayClient(options.displaySocket);
      try {
        process.stdout.write((await callUnary(client, 'PrintGraph', {}, 5_000))?.graph ?? '');
      } finally {
        client.close();
      }
    });
}
