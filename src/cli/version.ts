import { Command } from 'commander';
import { VERSION } from '../host/version.js';
import { displaySocketOption, withNode } from './display-client.js';
import { outputOption, print, type Output } from './output.js';

/** `gpu-manager version`: the versions of this program and of this node's agent. */
export function versionCommand(): Command {
  return new Command('version')
    .description('print the versions of this program and of the agent on this node')
    .addOption(outputOption())
    .addOption(displaySocketOption())
    .action(async (options: { readonly displaySocket: string; readonly output: Output }) => {
      // A missing agent is no error: it is shown as such.
      const agent = await withNode(options.displaySocket, (node) => node.version()).catch(() => null);
      const text = `gpu-manager ${VERSION}\nagent       ${agent ?? 'does not answer'}\nnode.js     ${process.version}\n`;
      await print(options.output, {
        document: () => ({ version: VERSION, agent, node: process.version }),
        table: () => text,
      });
    });
}
