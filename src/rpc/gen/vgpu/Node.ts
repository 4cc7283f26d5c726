// Original file: proto/node.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { NodeDocument as _vgpu_NodeDocument, NodeDocument__Output as _vgpu_NodeDocument__Output } from '../vgpu/NodeDocument.js';
import type { NodeEventsRequest as _vgpu_NodeEventsRequest, NodeEventsRequest__Output as _vgpu_NodeEventsRequest__Output } from '../vgpu/NodeEventsRequest.js';
import type { NodeGraph as _vgpu_NodeGraph, NodeGraph__Output as _vgpu_NodeGraph__Output } from '../vgpu/NodeGraph.js';
import type { NodeProcessesRequest as _vgpu_NodeProcessesRequest, NodeProcessesRequest__Output as _vgpu_NodeProcessesRequest__Output } from '../vgpu/NodeProcessesRequest.js';
import type { ShowNodeRequest as _vgpu_ShowNodeRequest, ShowNodeRequest__Output as _vgpu_ShowNodeRequest__Output } from '../vgpu/ShowNodeRequest.js';

export interface NodeClient extends grpc.Client {
  Events(argument: _vgpu_NodeEventsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Events(argument: _vgpu_NodeEventsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Events(argument: _vgpu_NodeEventsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Events(argument: _vgpu_NodeEventsRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  events(argument: _vgpu_NodeEventsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  events(argument: _vgpu_NodeEventsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  events(argument: _vgpu_NodeEventsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  events(argument: _vgpu_NodeEventsRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  
  Graph(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  Graph(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  Graph(argument: _vgpu_ShowNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  Graph(argument: _vgpu_ShowNodeRequest, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  graph(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  graph(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  graph(argument: _vgpu_ShowNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  graph(argument: _vgpu_ShowNodeRequest, callback: grpc.requestCallback<_vgpu_NodeGraph__Output>): grpc.ClientUnaryCall;
  
  Processes(argument: _vgpu_NodeProcessesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Processes(argument: _vgpu_NodeProcessesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Processes(argument: _vgpu_NodeProcessesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Processes(argument: _vgpu_NodeProcessesRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  processes(argument: _vgpu_NodeProcessesRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  processes(argument: _vgpu_NodeProcessesRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  processes(argument: _vgpu_NodeProcessesRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  processes(argument: _vgpu_NodeProcessesRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  
  Show(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Show(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Show(argument: _vgpu_ShowNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  Show(argument: _vgpu_ShowNodeRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  show(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  show(argument: _vgpu_ShowNodeRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  show(argument: _vgpu_ShowNodeRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  show(argument: _vgpu_ShowNodeRequest, callback: grpc.requestCallback<_vgpu_NodeDocument__Output>): grpc.ClientUnaryCall;
  
}

export interface NodeHandlers extends grpc.UntypedServiceImplementation {
  Events: grpc.handleUnaryCall<_vgpu_NodeEventsRequest__Output, _vgpu_NodeDocument>;
  
  Graph: grpc.handleUnaryCall<_vgpu_ShowNodeRequest__Output, _vgpu_NodeGraph>;
  
  Processes: grpc.handleUnaryCall<_vgpu_NodeProcessesRequest__Output, _vgpu_NodeDocument>;
  
  Show: grpc.handleUnaryCall<_vgpu_ShowNodeRequest__Output, _vgpu_NodeDocument>;
  
}

export interface NodeDefinition extends grpc.ServiceDefinition {
  Events: MethodDefinition<_vgpu_NodeEventsRequest, _vgpu_NodeDocument, _vgpu_NodeEventsRequest__Output, _vgpu_NodeDocument__Output>
  Graph: MethodDefinition<_vgpu_ShowNodeRequest, _vgpu_NodeGraph, _vgpu_ShowNodeRequest__Output, _vgpu_NodeGraph__Output>
  Processes: MethodDefinition<_vgpu_NodeProcessesRequest, _vgpu_NodeDocument, _vgpu_NodeProcessesRequest__Output, _vgpu_NodeDocument__Output>
  Show: MethodDefinition<_vgpu_ShowNodeRequest, _vgpu_NodeDocument, _vgpu_ShowNodeRequest__Output, _vgpu_NodeDocument__Output>
}
