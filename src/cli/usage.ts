import { Command } from 'commander';
import { callUnary } from '../wire/unary.js';
import { displayClient, DISPLAY_SOCKET_OPTION } from './display-client.js';

/** `gpu-manager usage`: what the containers of this node asked for and use, as JSON. */
export function usageCommand(): Command {
  return new Command('usage')
    .description('print what the containers of this node asked for and use')
    .option(...DISPLAY_SOCKET_OPTION)
    .action(async (options: { displaySocket: string }) => {
      const client = displayClient(options.displaySocket);
      try {
        process.stdout.write(`${JSON.stringify((await callUnary(client, 'PrintUsages', {}, 5_000))?.usage ?? {}, null, 2)}\n`);
      } finally {
        client.close();
      }
    });
}
