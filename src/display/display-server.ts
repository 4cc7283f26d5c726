import { UnixRpcServer, type RpcService } from '../wire/rpc-server.js';
import { displayProto } from '../wire/proto.js';
import { unary } from '../wire/unary.js';
import { usageResponse } from './answers.js';
import type { NodeView } from './view.js';

/** `display.GPUDisplay` on a unix socket, beside other services that belong there. Root's alone. */
export function displayServer(socketPath: string, view: NodeView, others: readonly RpcService[] = []): UnixRpcServer {
  const { GPUDisplay } = displayProto().display;
  return new UnixRpcServer(socketPath, [
    {
      definition: GPUDisplay.service,
      handlers: {
        PrintGraph: unary(async () => ({ graph: view.graph() })),
        PrintUsages: unary(async () => usageResponse(view.containers())),
        Version: unary(async () => ({ version: view.version })),
      },
    },
    ...others,
  ]);
}
