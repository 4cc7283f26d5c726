import { Option } from 'commander';
import type { NodeClient } from './node-client.js';

export type { NodeClient } from './node-client.js';

export const DISPLAY_SOCKET_OPTION = [
  '--display-socket <path>',
  'unix socket of the running agent',
  '/var/run/gpu-manager.sock',
] as const;

/** `-o text` for people, `-o json` for programs. */
export function outputOption(): Option {
  return new Option('-o, --output <format>', 'text or json').choices(['text', 'json']).default('text');
}

export type Output = 'text' | 'json';

/** Works with the agent on this node. Help and refusals need no gRPC, which takes longer to load than all the rest. */
export async function withNode<T>(socketPath: string, work: (node: NodeClient) => Promise<T>): Promise<T> {
  const { NodeClient: Client } = await import('./node-client.js');
  const node = new Client(socketPath);
  try {
    return await work(node);
  } finally {
    node.close();
  }
}
