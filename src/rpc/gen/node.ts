import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { NodeClient as _vgpu_NodeClient, NodeDefinition as _vgpu_NodeDefinition } from './vgpu/Node.js';
import type { NodeDocument as _vgpu_NodeDocument, NodeDocument__Output as _vgpu_NodeDocument__Output } from './vgpu/NodeDocument.js';
import type { NodeEventsRequest as _vgpu_NodeEventsRequest, NodeEventsRequest__Output as _vgpu_NodeEventsRequest__Output } from './vgpu/NodeEventsRequest.js';
import type { NodeGraph as _vgpu_NodeGraph, NodeGraph__Output as _vgpu_NodeGraph__Output } from './vgpu/NodeGraph.js';
import type { NodeProcessesRequest as _vgpu_NodeProcessesRequest, NodeProcessesRequest__Output as _vgpu_NodeProcessesRequest__Output } from './vgpu/NodeProcessesRequest.js';
import type { ShowNodeRequest as _vgpu_ShowNodeRequest, ShowNodeRequest__Output as _vgpu_ShowNodeRequest__Output } from './vgpu/ShowNodeRequest.js';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  vgpu: {
    Node: SubtypeConstructor<typeof grpc.Client, _vgpu_NodeClient> & { service: _vgpu_NodeDefinition }
    NodeDocument: MessageTypeDefinition<_vgpu_NodeDocument, _vgpu_NodeDocument__Output>
    NodeEventsRequest: MessageTypeDefinition<_vgpu_NodeEventsRequest, _vgpu_NodeEventsRequest__Output>
    NodeGraph: MessageTypeDefinition<_vgpu_NodeGraph, _vgpu_NodeGraph__Output>
    NodeProcessesRequest: MessageTypeDefinition<_vgpu_NodeProcessesRequest, _vgpu_NodeProcessesRequest__Output>
    ShowNodeRequest: MessageTypeDefinition<_vgpu_ShowNodeRequest, _vgpu_ShowNodeRequest__Output>
  }
}

