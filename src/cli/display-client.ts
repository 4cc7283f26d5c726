import { credentials } from '@grpc/grpc-js';
import { displayProto } from '../wire/proto.js';

export const DISPLAY_SOCKET_OPTION = ['--display-socket <path>', 'unix socket of the running agent', '/var/run/gpu-manager.sock'] as const;

/** A client of the agent on this node. */
export function displayClient(socketPath: string) {
  const { GPUDisplay } = displayProto().display;
  return new GPUDisplay(`unix:${socketPath}`, credentials.createInsecure());
}
