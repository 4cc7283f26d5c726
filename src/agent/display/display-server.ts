import type { NodeProcessesRequest__Output } from '../../rpc/gen/vgpu/NodeProcessesRequest.js';
import type { NodeEventsRequest__Output } from '../../rpc/gen/vgpu/NodeEventsRequest.js';
import { UnixRpcServer, type RpcService } from '../../rpc/rpc-server.js';
import { displayProto, nodeProto } from '../../rpc/proto.js';
import { unary } from '../../rpc/unary.js';
import { usageResponse } from './answers.js';
import type { Journal, ProcessDocument, NodeView } from '../node/index.js';

export interface DisplayServerOptions {
  readonly socketPath: string;
  readonly view: NodeView;
  readonly journal: Journal;
  readonly processes: (allocation: string) => Promise<ProcessDocument>;
  /** Further services on the socket. */
  readonly others?: readonly RpcService[];
}

/** `display.GPUDisplay` and `vgpu.Node`, with other services for root, on a unix socket that only root can open. */
export function displayServer({
  socketPath,
  view,
  journal,
  processes,
  others = [],
}: DisplayServerOptions): UnixRpcServer {
  return new UnixRpcServer(socketPath, [
    {
      get definition() {
        return displayProto().display.GPUDisplay.service;
      },
      handlers: {
        PrintGraph: unary(async () => ({ graph: view.graph() })),
        PrintUsages: unary(async () => usageResponse(view.snapshot(), (podUid) => view.pod(podUid))),
        Version: unary(async () => ({ version: view.version })),
      },
    },
    {
      get definition() {
        return nodeProto().vgpu.Node.service;
      },
      handlers: {
        Show: unary(async () => ({ json: JSON.stringify(view.snapshot()) })),
        Events: unary(async ({ after }: NodeEventsRequest__Output) => ({
          json: JSON.stringify({ events: journal.after(Number(after)) }),
        })),
        Graph: unary(async () => ({ graph: view.graph({ extended: true }) })),
        Processes: unary(async ({ allocation }: NodeProcessesRequest__Output) => ({
          json: JSON.stringify(await processes(allocation)),
        })),
      },
    },
    ...others,
  ]);
}
