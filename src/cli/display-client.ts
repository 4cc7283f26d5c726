import { Option } from 'commander';
import type { ServiceError } from '@grpc/grpc-js';
import type { NodeClient } from './node-client.js';

/**
 * gRPC status codes. They are written here because loading the gRPC library takes longer than everything else in a
 * command that only prints help.
 */
const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;
export const UNIMPLEMENTED = 12;

/** The `--display-socket` option of every command that queries the agent of this node. */
export function displaySocketOption(): Option {
  return new Option('--display-socket <path>', 'unix socket of the running agent')
    .env('GPU_MANAGER_DISPLAY_SOCKET')
    .default('/var/run/gpu-manager.sock');
}

/** Calls `work` with the socket of the agent on this node. */
export async function withNode<T>(socketPath: string, work: (node: NodeClient) => Promise<T>): Promise<T> {
  const { NodeClient: Client } = await import('./node-client.js');
  return withAgent(socketPath, new Client(socketPath), work);
}

/**
 * Calls `work` with a client of the agent, then closes the client. If the connection fails, the error says what to do.
 */
export async function withAgent<C extends { close(): void }, T>(
  socketPath: string,
  client: C,
  work: (client: C) => Promise<T>,
): Promise<T> {
  try {
    return await work(client);
  } catch (error) {
    const problem = connectionProblem(socketPath, error as Partial<ServiceError>);
    throw problem === null ? error : new Error(problem, { cause: error });
  } finally {
    client.close();
  }
}

/** Advice for a call that did not reach the agent; null for other errors. */
export function connectionProblem(
  socketPath: string,
  { code, details = '' }: { readonly code?: number; readonly details?: string },
): string | null {
  if (code === DEADLINE_EXCEEDED) return `the agent at ${socketPath} did not answer in time: see its log`;
  if (code !== UNAVAILABLE) return null;
  return /EACCES|EPERM/.test(details)
    ? `this user may not connect to ${socketPath}: run the command as root, or name another socket (--display-socket)`
    : `no agent answers at ${socketPath}: is it running? (--display-socket)`;
}
